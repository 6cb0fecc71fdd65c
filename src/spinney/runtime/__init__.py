"""Threads, progress, memory and rollback of a running fit."""
