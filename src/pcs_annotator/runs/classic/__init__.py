"""What the paper's class `PCS` needs: its files, its keys and relations, and the answers about texts."""
