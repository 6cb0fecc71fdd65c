"""Threads, progress and memory of a running fit."""
