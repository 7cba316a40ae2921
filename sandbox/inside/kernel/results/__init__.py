"""What becomes of a cell's results: how values are shown, how charts are described and delivered, how both look by default."""
