"""What axe, the checker of accessibility, finds on a page."""

from importlib.resources import files

SCRIPT = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def violations(page) -> list[str]:
    """The rules that the page breaks, each with the elements that do."""
    page.context.new_cdp_session(page).send(
        "Runtime.evaluate", {"expression": SCRIPT}
    )  # which the policy of the page does not stop
    found = page.evaluate("() => axe.run().then(({ violations }) => violations)")
    return [f"{rule['id']}: {[node['target'] for node in rule['nodes']]}" for rule in found]
