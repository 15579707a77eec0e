"""A service on Ray: an address in this process, and replicas of the worker on the machines of a cluster."""
