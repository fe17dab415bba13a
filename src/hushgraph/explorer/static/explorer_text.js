/* Numbers and sentences of the explorer as text. Nothing here sends requests or changes the page. */

"use strict";

const ExplorerText = (() => {
  const short = (v, digits = 3) => (v >= 1000 ? Math.round(v).toLocaleString("en-GB") : `${+v.toPrecision(digits)}`);
  const fixed = (v) => (v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(2));
  const whole = (v) => v.toLocaleString("en-GB");

  /* A power of ten with its exponent in superscript; other numbers as they are. */
  function power(v) {
    const exponent = Math.round(Math.log10(v));
    if (Math.abs(Math.log10(v) - exponent) > 1e-9) return `${v}`;
    return `10${`${exponent}`.replace("-", "⁻").replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d])}`;
  }

  const sensitivity = (squared) => (Number.isInteger(Math.sqrt(Number(squared))) ? `${Math.sqrt(Number(squared))}` : `√${squared}`);

  const words = { node: "junction", edges: "street segments", graph: "streets" }; // what the parts of the graph are called

  function nameZones() {
    Object.assign(words, { node: "zone", edges: "common borders", graph: "zones" });
  }

  const graphSize = ({ nodes, edges }) => `${whole(nodes)} ${words.node}s, ${whole(edges)} ${words.edges}`;

  /* Titles by mode: "map" while a map is shown, "first" or "another" while a release is planned. */
  const titles = (mode) => ({
    map: { privacy: "How private", noise: `Noise added to every ${words.node}`, errors: `Typical error per ${words.node}` },
    first: { privacy: "How private the map would be", noise: `Noise it would have at every ${words.node}`, errors: `Typical error per ${words.node}` },
    another: { privacy: "How private a new map would be", noise: "Noise a new map would have", errors: "Typical error of a new map" },
  })[mode];

  /* The number that a user typed, with a point or a comma; NaN for any other text, so that nothing is read as another number. */
  const parseNumber = (typed) => (/^\s*(\d+[.,]?\d*|[.,]\d+)\s*$/.test(typed) ? Number(typed.replace(",", ".")) : NaN);

  /* What is wrong with a typed ε; empty if it can be used. */
  function epsilonProblem(typed, used, { min, max }) {
    const value = parseNumber(typed);
    if (value >= min && value <= max) return "";
    const problem = Number.isNaN(value) ? "This is not a number" : `ε goes from ${min} to ${max} here`;
    return `${problem}: ε = ${used} is kept. Type a number such as 0.5 or 0,5. `;
  }

  function releaseTitle({ draws, release }) {
    return `release ${draws}, ε = ${short(release.epsilon)}, σ = ${short(release.sigma)}`;
  }

  function budgetNote(budget, isPlan) {
    const left = `One more release may have ε up to ${short(budget.remaining)}`;
    const after = isPlan && budget.fits ? ` This one would bring the total to ${short(budget.spent_after)}.` : "";
    const period = budget.period ? ` in ${budget.period}` : "";
    return `Spent: ε = ${short(budget.spent)} of ${short(budget.epsilon)}${period}.${after} ${budget.remaining > 0 ? left : "Nothing is left"}.`;
  }

  /* The text under the buttons, which says what drawing would do or where the release is; and whether it is a warning. */
  function releaseNote(session, { mode, epsilon, fits }) {
    if (session.kind === "generated") return ["Generated counts, simulated noise: nothing here is published. Open your own events to draw a release.", false];
    if (session.kind === "release") return ["A published map. Denoising it again costs no privacy; drawing needs the events and their ledger.", false];
    const notSaved = session.release && !session.saved_in;
    if (mode === "map" && notSaved) return [`Release ${session.draws} is drawn and charged, but could not be saved (${session.save_error}). Download it now: it is lost when the program ends.`, true];
    if (mode === "map") return [`Release ${session.draws} is charged and saved in ${session.saved_in.split(/[\\/]/).slice(-2).join("/")}. Download gives it with the settings above.`, false];
    if (notSaved) return [`Release ${session.draws} could not be saved (${session.save_error}). Download it before you go on: it is lost when the program ends.`, true];
    if (!fits) return ["The budget does not allow this ε. Move the slider to the left, or ask whoever manages the budget to renew it.", true];
    return [`Charges the ledger ε = ${short(epsilon)}, draws fresh noise once, saves the release and shows it. You will be asked to confirm.`, false];
  }

  const percent = (share) => `${Math.round(100 * share)} %`;
  const MIN_SHARE = 0.005; // a smaller share of the squared error is rounded to 0 %

  /* What the interval of a node means; `actual` is known for generated counts only. */
  function intervalNote({ level, actual }) {
    const meaning = `Point at a ${words.node} for an interval; it holds the true count at about ${percent(level)} of the ${words.node}s`;
    return actual === undefined ? `${meaning}.` : `${meaning} (here ${percent(actual)}).`;
  }

  /* What each guide did, as rows of name, effect and origin, and a note on all of them. `effects` is null where they were not used. */
  function guideTexts(guides, effects, { mode, isOn, takesGuides }) {
    const names = guides.map(({ name }) => name).join(", ");
    if (mode !== "map") return [[], `${guides.length > 1 ? `${guides.length} public maps help` : "A public map helps"} to denoise the release once it is drawn; the plan is made without.`];
    if (!takesGuides) return [[], `${names}: not used, since the chosen method takes no guides. The first method does.`];
    if (!isOn) return [[], `${names}: not used. The map is denoised from the noisy map alone.`];
    if (!effects) return [[], `${names}: used as soon as the slider rests.`];
    const useful = effects.each.filter(({ removed }) => removed >= MIN_SHARE);
    const rows = useful.map(({ name, removed, made_from }) => [name, `removed ${percent(removed)}`, made_from]);
    const others = new Map(); // names by what is said of them
    for (const { name, removed, in_words } of effects.each)
      if (removed < MIN_SHARE) others.set(in_words, [...(others.get(in_words) ?? []), name]);
    const rest = [...others].map(([words, list]) => `${words[0].toUpperCase()}${words.slice(1)}: ${list.join(", ")}.`);
    if (useful.length) rest.unshift(`Together: ${percent(effects.removed)} of the squared error that was left without guides.`);
    return [rows, rest.join(" ")];
  }

  function attestation({ unit, caps: { max_nodes: nodes, max_per_node: times } }) {
    const often = times > 1 ? `${whole(times)} times` : "once";
    return `The ${words.graph} and the limits (each ${unit} in at most ${whole(nodes)} ${words.node}${nodes > 1 ? "s" : ""}, ${often} in each) were fixed without looking at the data.`;
  }

  function certificateRows(certificate, savedIn) {
    return [
      ["guarantee", `ε = ${certificate.epsilon}, δ = ${certificate.delta}`],
      ["for each", certificate.unit ?? "unit"],
      ["neighbours", certificate.adjacency],
      ["bound", certificate.bound],
      ["sensitivity²", `${certificate.sensitivity_squared}`],
      ["not protected", certificate.not_protected],
      ["noise", `σ = ${certificate.sigma.toPrecision(6)}, lattice ${certificate.lattice}`],
      ["ledger", `${certificate.ledger.dataset}, entry ${certificate.ledger.entry}`],
      ["head", certificate.ledger.head.slice(0, 16)],
      ["drawn", certificate.created],
      ["graph", certificate.graph.hash.slice(0, 16)],
      ...(certificate.attribution ? [[words.graph, certificate.attribution]] : []),
      ...(savedIn ? [["saved in", savedIn]] : []),
    ];
  }

  /* Rows and note of the total of a region. */
  function regionTexts(answer, label, isGuided) {
    if (!answer.nodes) return [[], `No ${words.node} is inside.`];
    const digits = answer.se >= 10 ? 0 : 1;
    const number = (x) => x.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
    const rows = [
      [`${label}, ${whole(answer.nodes)} ${words.node}s`, `${number(answer.total)} ± ${number(answer.se)}`],
      [`${100 * answer.level} % between`, `${number(answer.lower)} and ${number(answer.upper)}`],
      ["sum of the noisy map", `${number(answer.noisy)} ± ${number(answer.noisy_se)}`],
    ];
    return [rows, `From the noisy map ${isGuided ? "and guides" : "alone"}. The errors hold for regions that were not chosen for their values.`];
  }

  return { words, nameZones, graphSize, titles, short, fixed, whole, power, sensitivity, parseNumber, epsilonProblem, releaseTitle, budgetNote, releaseNote, intervalNote, guideTexts, attestation, certificateRows, regionTexts };
})();
