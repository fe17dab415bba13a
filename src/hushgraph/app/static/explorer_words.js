/* The explorer's numbers and sentences; nothing here asks the server or changes the page. */

"use strict";

const HushWords = (() => {
  const short = (v, digits = 3) => (v >= 1000 ? Math.round(v).toLocaleString("en-GB") : `${+v.toPrecision(digits)}`);
  const fixed = (v) => (v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(2));
  const whole = (v) => v.toLocaleString("en-GB");

  function power(v) {
    const exponent = Math.round(Math.log10(v));
    if (Math.abs(Math.log10(v) - exponent) > 1e-9) return `${v}`;
    return `10${`${exponent}`.replace("-", "⁻").replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d])}`;
  }

  const sensitivity = (squared) => (Number.isInteger(Math.sqrt(Number(squared))) ? `${Math.sqrt(Number(squared))}` : `√${squared}`);

  /* What is shown: "map" for one that is there, "first" or "another" while a release is planned. */
  const TITLES = {
    map: { privacy: "How private", noise: "Noise added to every junction", errors: "Typical error per junction" },
    first: { privacy: "How private the map would be", noise: "Noise it would have at every junction", errors: "Typical error per junction" },
    another: { privacy: "How private a new map would be", noise: "Noise a new map would have", errors: "Typical error of a new map" },
  };

  /* A number as people type it: a comma is a decimal point. NaN for everything else, so that nothing is read as another number. */
  const number = (typed) => (/^\s*(\d+[.,]?\d*|[.,]\d+)\s*$/.test(typed) ? Number(typed.replace(",", ".")) : NaN);

  /* Why a text is no ε of this page, for the line below its box; empty if it is one. */
  function fault(typed, used, { least, most }) {
    const value = number(typed);
    if (value >= least && value <= most) return "";
    const problem = Number.isNaN(value) ? "This is not a number" : `ε goes from ${least} to ${most} here`;
    return `${problem}: ε = ${used} is kept. Type a number such as 0.5 or 0,5. `;
  }

  function published({ draws, release }) {
    return `release ${draws}, ε = ${short(release.epsilon)}, σ = ${short(release.sigma)}`;
  }

  function budget(known, planned) {
    const left = `One more release may have ε up to ${short(known.remaining)}`;
    const after = planned && known.fits ? ` This one would bring the total to ${short(known.spent_after)}.` : "";
    const period = known.period ? ` in ${known.period}` : "";
    return `Spent: ε = ${short(known.spent)} of ${short(known.epsilon)}${period}.${after} ${known.remaining > 0 ? left : "Nothing is left"}.`;
  }

  /* Under the buttons: what drawing would do, or what became of the release; and whether it is a warning. */
  function release(start, { mode, epsilon, fits }) {
    if (start.kind === "generated") return ["Generated counts, simulated noise: nothing here is published. Open your own events to draw a release.", false];
    if (start.kind === "release") return ["A published map. Denoising it again costs no privacy; drawing needs the events and their ledger.", false];
    const lost = start.release && !start.kept;
    if (mode === "map" && lost) return [`Release ${start.draws} is drawn and charged, but could not be saved (${start.fault}). Download it now: it is lost when the program ends.`, true];
    if (mode === "map") return [`Release ${start.draws} is charged and saved in ${start.kept.split(/[\\/]/).slice(-2).join("/")}. Download gives it with the settings above.`, false];
    if (lost) return [`Release ${start.draws} could not be saved (${start.fault}). Download it before you go on: it is lost when the program ends.`, true];
    if (!fits) return ["The budget does not allow this ε. Move the slider to the left, or let the budget's keeper renew it.", true];
    return [`Charges the ledger ε = ${short(epsilon)}, draws fresh noise once, saves the release and shows it. You are asked before.`, false];
  }

  function caps({ unit, caps: { max_nodes: nodes, max_per_node: times } }) {
    const often = times > 1 ? `${whole(times)} times` : "once";
    return `The streets and the limits (each ${unit} in at most ${whole(nodes)} junction${nodes > 1 ? "s" : ""}, ${often} in each) were fixed without looking at the data.`;
  }

  function certificate(said, kept) {
    return [
      ["guarantee", `ε = ${said.epsilon}, δ = ${said.delta}`],
      ["for each", said.unit ?? "unit"],
      ["neighbours", said.adjacency],
      ["bound", said.bound],
      ["sensitivity²", `${said.sensitivity_squared}`],
      ["not protected", said.not_protected],
      ["noise", `σ = ${said.sigma.toPrecision(6)}, lattice ${said.lattice}`],
      ["ledger", `${said.ledger.dataset}, entry ${said.ledger.entry}`],
      ["head", said.ledger.head.slice(0, 16)],
      ["drawn", said.created],
      ["graph", said.graph.hash.slice(0, 16)],
      ...(said.attribution ? [["streets", said.attribution]] : []),
      ...(kept ? [["saved in", kept]] : []),
    ];
  }

  return { TITLES, short, fixed, whole, power, sensitivity, number, fault, published, budget, release, caps, certificate };
})();
