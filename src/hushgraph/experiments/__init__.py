"""One file per table or figure, each with run() -> rows and render(rows)."""
