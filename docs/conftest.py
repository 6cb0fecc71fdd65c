"""What pytest leaves alone here: scripts run in tests of their own, and Sphinx's files."""

collect_ignore_glob = ["gallery/*.py", "conf.py", "_extensions/*", "api/*"]
