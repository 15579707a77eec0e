"""List, fetch, verify, corrupt and show data sets."""

EXAMPLE = "ncttt data list"
GROUP = "data"
