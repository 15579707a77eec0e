"""What the project reports of itself: the figures that explain the method."""
