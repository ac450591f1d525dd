"""What keeps the repository honest: generated docs, types of other platforms, repeated runs."""
