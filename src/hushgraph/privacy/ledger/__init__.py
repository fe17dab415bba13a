"""The ledger: one file is one budget; entries are linked by hashes; this machine remembers the newest entry of each ledger."""
