"""What several figures share: the style, the selection of rows, a plane, boxes, adapted models."""
