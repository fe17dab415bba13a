"""The ledger: one file is one budget; entries are linked by hashes; this machine remembers the heads it has seen."""
