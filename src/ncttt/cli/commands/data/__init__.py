"""List, fetch, verify, corrupt and show data sets."""
