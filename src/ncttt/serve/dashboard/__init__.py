"""The dashboard of a service: the last batches of its streams, a playground, and the page that shows both."""
