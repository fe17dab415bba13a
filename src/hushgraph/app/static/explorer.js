/* The explorer's page. The server says what may be shown; this file asks and shows.

   One request is in flight at a time, and the latest position of the slider wins: while it moves a fast method answers, and
   when it rests the chosen one. On private events the slider changes numbers only; maps come with a release. */

"use strict";

(() => {
  const $ = (id) => document.getElementById(id);
  const REST = 350; // milliseconds without a movement after which the chosen method is asked
  const STEPS = 200; // of the slider
  let start, graph, map, shown; // what the server said at first; the unpacked graph; the map; the latest answer of this mode
  let epsilon, locked, saved; // locked: a release is shown, and its ε stays
  let drawn = null; // the maps that are shown, with the settings they were made with
  let failed = false; // the latest request
  let [wanted, busy, resting, slow] = [null, false, 0, null]; // slow: what stops a request for the chosen method

  // ---- the server -------------------------------------------------------------------------------------------------------

  const token = (() => {
    const given = new URLSearchParams(location.hash.slice(1)).get("token");
    if (given) {
      sessionStorage.setItem("token", given); // for a reload of this tab
      history.replaceState(null, "", location.pathname);
    }
    return given ?? sessionStorage.getItem("token") ?? "";
  })();

  async function ask(path, body, signal) {
    const headers = { "X-Hushgraph-Token": token, ...(body && { "Content-Type": "application/json" }) };
    let answer;
    try {
      answer = await fetch(`/api/${path}`, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal });
    } catch (fault) {
      if (fault.name === "AbortError") throw fault;
      throw new Error("The program that this page belongs to does not answer any more. Start it again.");
    }
    if (answer.ok) return answer;
    const text = await answer.text();
    let said = { error: text };
    try {
      said = JSON.parse(text);
    } catch {
      // plain text already
    }
    throw Object.assign(new Error(said.error), { superseded: said.superseded });
  }

  function say(text, bad = false) {
    $("status").textContent = text;
    $("status").classList.toggle("bad", bad);
  }

  const { short, fixed, whole, power } = HushWords;

  function pairs(list, rows) {
    list.replaceChildren();
    for (const [name, value] of rows) {
      const [term, said] = [document.createElement("dt"), document.createElement("dd")];
      term.textContent = name;
      said.textContent = value;
      list.append(term, said);
    }
  }

  /* "map": what there is, generated or published; "first" and "another": a release that is planned. */
  const mode = () => (start.kind !== "private" || locked ? "map" : start.release ? "another" : "first");

  // ---- epsilon ----------------------------------------------------------------------------------------------------------

  const toSlider = (e) => Math.round((STEPS * Math.log(e / start.epsilon.least)) / Math.log(start.epsilon.most / start.epsilon.least));
  const fromSlider = (s) => +(start.epsilon.least * (start.epsilon.most / start.epsilon.least) ** (s / STEPS)).toPrecision(3);

  function setEpsilon(e) {
    epsilon = +Math.min(Math.max(e, start.epsilon.least), start.epsilon.most).toPrecision(4);
    $("slider").value = toSlider(epsilon);
    $("slider").setAttribute("aria-valuetext", `epsilon ${short(epsilon)}`);
    if (document.activeElement !== $("number")) $("number").value = epsilon;
    showFault("");
  }

  /* What is wrong with the text in the box of ε. Until it is mended nothing can be drawn, and the text stays. */
  function showFault(text) {
    $("fault").textContent = text;
    $("number").setAttribute("aria-invalid", text !== "");
    showDraw();
  }

  function readNumber() {
    const text = HushWords.fault($("number").value, epsilon, start.epsilon);
    if (text) showFault(text);
    else if (HushWords.number($("number").value) !== epsilon) move(HushWords.number($("number").value));
    else showFault("");
  }

  function move(e) {
    setEpsilon(e);
    refresh(true);
  }

  // ---- asking, one request at a time -------------------------------------------------------------------------------------

  const parameters = () => ({
    epsilon,
    method: $("method").value,
    rule: $("rule").value,
    refine: $("refine").checked,
    nonnegative: $("nonnegative").checked,
    integer: $("integer").checked,
    plan: !locked,
  });

  function refresh(moving = false) {
    clearTimeout(resting);
    wanted = { ...parameters(), moving };
    if (moving) resting = setTimeout(refresh, REST);
    slow?.abort(); // whoever moves on does not wait for it
    pump();
  }

  async function pump() {
    if (busy) return;
    busy = true;
    while (wanted) {
      const [wish, draws] = [wanted, start.draws];
      [wanted, failed] = [null, false];
      if (!wish.moving) {
        slow = new AbortController();
        say("Denoising …");
      }
      try {
        const found = await (await ask("look", wish, slow?.signal)).json();
        if (wish.plan === !locked && draws === start.draws) await show(found, wish);
        if (!wanted) say("");
      } catch (fault) {
        if (fault.superseded) resting = setTimeout(refresh, 2 * REST); // another window asked
        else if (fault.name !== "AbortError") {
          failed = true;
          say(fault.message, true);
        }
      }
      slow = null;
    }
    busy = false;
  }

  // ---- showing ----------------------------------------------------------------------------------------------------------

  async function show(found, wish) {
    shown = found;
    $("sigma").textContent = `σ = ${short(found.sigma)}`;
    $("guarantee").textContent = found.guarantee;
    showErrors(found);
    showBudget(found.budget ?? start.budget);
    $("risk").hidden = !found.risk;
    if (found.maps) {
      const [noisy, denoised] = await Promise.all([HushMap.unpack(found.maps.noisy), HushMap.unpack(found.maps.denoised)]);
      if (wish.plan !== !locked) return; // while it was unpacked
      drawn = { noisy, denoised, wish };
      showMaps();
      $("unseen").hidden = true;
      $("map").classList.remove("empty");
    }
    if (found.risk) {
      drawRisk($("chart"), $("legend"), found.risk, { label: start.label });
      showRiskNote(found);
    }
    document.body.dataset.shown = `${found.epsilon} ${found.method}${found.settled ? "" : " moving"}`;
  }

  function showMaps() {
    if (!drawn) return;
    const notes = [start.kind === "generated" ? "as it would be published" : "as published", "from the noisy map alone"];
    if (mode() === "another") notes.fill(HushWords.published(start)); // the rail speaks of another one
    map.setMaps(["Noisy", "Denoised"].map((title, k) => ({ title, values: [drawn.noisy, drawn.denoised][k], note: notes[k] })));
  }

  function showErrors({ errors, region }) {
    const rows = [["noisy", `± ${fixed(errors.noisy)}`]];
    rows.push([region ? "denoised, expected" : "denoised, estimated", errors.denoised === null ? "not known" : errors.below === undefined ? `± ${fixed(errors.denoised)}` : `below ± ${fixed(errors.below)}`]);
    if (errors.actual !== undefined) rows.push(["denoised, actual", `± ${fixed(errors.actual)}`]);
    pairs($("errors"), rows);
    let note = errors.actual === undefined ? "Estimated from the noisy map alone (SURE), before clipping." : "The actual error is known only because these counts are generated.";
    if (region) {
      const reach = region.possible ? `${whole(region.nodes)} junctions` : `${whole(region.nodes)} junctions, more than there are`;
      note = `On generated counts on these streets; your data was not looked at. A total within ${100 * region.reliable} % needs about ${reach}.`;
    }
    $("errors-note").textContent = note;
  }

  function showRiskNote(found) {
    const own = found.method === "sgwt_sure" && $("rule").value === "james_stein";
    const what = own ? "The dot is the threshold taken." : "The dot is the threshold of the paper's method.";
    const more = own || found.method.startsWith("sgwt") ? "" : " Combined methods use these scales and more.";
    $("risk-note").textContent = `From whole districts to single junctions. ${what}${more}`;
  }

  function showBudget(budget) {
    $("budget").hidden = !budget;
    if (!budget) return;
    start.budget = budget;
    const share = (e) => `${Math.min(100, (100 * e) / budget.epsilon)}%`;
    const [spent, next] = $("bar").children;
    spent.style.width = share(budget.spent);
    const planned = !locked && budget.spent_after !== undefined;
    next.style.width = planned ? share(Math.max(0, Math.min(budget.spent_after, budget.epsilon) - budget.spent)) : "0";
    $("budget-note").textContent = HushWords.budget(budget, planned);
    $("bar").setAttribute("aria-label", `${short(budget.spent)} of ${short(budget.epsilon)} spent`);
    showDraw();
  }

  // ---- the release ------------------------------------------------------------------------------------------------------

  /* What a release at this ε would cost is known. */
  const planned = () => shown?.budget?.spent_after !== undefined;

  function showDraw() {
    const mine = start.kind === "private";
    const fits = start.budget?.fits !== false;
    $("check-button").hidden = !start.checkable || Boolean(start.release); // for the time before anything is spent
    $("draw-button").hidden = !mine || locked;
    $("draw-button").disabled = !fits || !planned() || $("fault").textContent !== "";
    $("another").hidden = !mine || !locked;
    $("back").hidden = mode() !== "another";
    $("back").textContent = `Back to release ${start.draws}`;
    $("download").hidden = !mine || !start.release;
    $("download").textContent = locked ? "Download" : "Download it";
    $("download").title = `Download release ${start.draws}`;
    $("download").className = locked ? "primary" : "plain";
    $("certificate").hidden = !start.release || mode() === "another";
    const [note, warning] = HushWords.release(start, { mode: mode(), epsilon, fits });
    $("draw-note").textContent = note;
    $("draw-note").title = mine ? (start.kept ?? start.keep) : "";
    $("draw-note").classList.toggle("warning", warning);
    if (start.release) pairs($("certificate").querySelector("dl"), HushWords.certificate(start.release.certificate, start.kept));
  }

  /* A release is shown, or the next one planned: what was shown of the other is forgotten. */
  function lock(yes) {
    [locked, shown] = [yes, null];
    $("slider").disabled = $("number").disabled = yes;
    if (yes && start.release) setEpsilon(start.release.epsilon);
    else setEpsilon(epsilon);
    $("number").value = epsilon;
    $("guarantee").textContent = ""; // comes with the next answer
    document.body.dataset.shown = "";
    document.body.dataset.mode = mode();
    for (const [part, title] of Object.entries(HushWords.TITLES[mode()])) $(`${part}-title`).textContent = title;
    showMaps();
    showDraw();
  }

  function list(part, texts) {
    part.replaceChildren(...texts.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
  }

  /* What counting made of the events: asked for each time, shown, and forgotten when it is closed. */
  async function openCheck() {
    $("check-button").disabled = true;
    say("Reading your events …");
    try {
      const found = await (await ask("check", {})).json();
      $("check-private").textContent = found.private;
      pairs($("check-list"), found.table.map(([name, number]) => [name, whole(number)]));
      $("check-units").textContent = found.units;
      list($("check-hints"), found.hints.map((hint) => `Probably: ${hint}.`));
      list($("check-dropped"), found.dropped);
      $("check-dropped").parentElement.hidden = !found.dropped.length;
      $("check-advice").textContent = found.advice;
      $("check").showModal();
      say("");
    } catch (fault) {
      say(fault.message, true);
    }
    $("check-button").disabled = false;
  }

  function forgetCheck() {
    for (const id of ["check-private", "check-list", "check-units", "check-hints", "check-dropped"]) $(id).replaceChildren();
  }

  async function openConfirm() {
    const ready = () => planned() && shown.epsilon === epsilon; // the numbers must be those of this ε
    $("draw-button").disabled = true;
    if (!ready() && !busy) refresh();
    while (!ready() && !failed && !locked) await new Promise((done) => setTimeout(done, 50));
    showDraw();
    if (!ready() || locked) return; // the page says what is wrong
    const { budget } = shown;
    pairs($("confirm-list"), [
      ["Privacy loss ε", `${epsilon}`],
      ["δ", power(start.delta)],
      ["Noise σ", short(shown.sigma)],
      ["Spent so far", `${short(budget.spent)} of ${short(budget.epsilon)}`],
      ["Spent after this", `${short(budget.spent_after)} of ${short(budget.epsilon)}`],
    ]);
    $("confirm-words").textContent = shown.guarantee;
    $("attest-text").textContent = HushWords.caps(start);
    $("keep-text").textContent = `It is saved at once in a new folder of ${start.keep}; what is in there may be passed on.`;
    $("attest").checked = false;
    $("go").disabled = true;
    $("confirm-error").textContent = "";
    $("confirm").showModal();
  }

  async function draw() {
    $("go").disabled = true;
    $("go").textContent = "Drawing …";
    try {
      const found = await (await ask("draw", { epsilon, number: start.draws + 1, public_graph: $("attest").checked })).json();
      Object.assign(start, found);
      saved = Boolean(found.kept);
      $("confirm").close();
      lock(true);
      refresh();
    } catch (fault) {
      $("confirm-error").textContent = fault.message;
    } finally {
      $("go").textContent = "Charge and draw";
    }
  }

  async function download() {
    say("Writing the release …");
    try {
      const { epsilon: e, method, nonnegative, integer } = locked || !drawn ? parameters() : drawn.wish; // as it is shown
      const packed = await (await ask("download", { epsilon: e, method, nonnegative, integer })).blob();
      const link = document.createElement("a");
      link.href = URL.createObjectURL(packed);
      link.download = `release-${start.draws}.zip`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
      saved = true;
      say("");
    } catch (fault) {
      say(fault.message, true);
    }
  }

  // ---- the page ---------------------------------------------------------------------------------------------------------

  function showMethod() {
    const chosen = start.methods.find((one) => one.name === $("method").value);
    const mine = start.kind === "private"; // a release is exported with the method's own settings
    $("rule-line").hidden = mine || !chosen.rule;
    $("refine-line").hidden = mine || !chosen.refine;
    $("refine").checked = chosen.refine_default;
  }

  function listen() {
    $("slider").addEventListener("input", () => move(fromSlider(+$("slider").value)));
    $("number").addEventListener("input", readNumber);
    $("number").addEventListener("change", () => {
      if (!$("fault").textContent) $("number").value = epsilon; // to the digits that are used
    });
    $("method").addEventListener("change", () => {
      showMethod();
      refresh();
    });
    for (const id of ["rule", "refine", "nonnegative", "integer"]) $(id).addEventListener("change", () => refresh());
    $("draw-button").addEventListener("click", openConfirm);
    $("check-button").addEventListener("click", openCheck);
    $("check-close").addEventListener("click", () => {
      forgetCheck(); // at once: a browser says "close" a moment later
      $("check").close();
    });
    $("check").addEventListener("close", forgetCheck); // the Escape key closes it too
    $("cancel").addEventListener("click", () => $("confirm").close());
    $("attest").addEventListener("change", () => ($("go").disabled = !$("attest").checked));
    $("go").addEventListener("click", draw);
    $("download").addEventListener("click", download);
    for (const [id, yes] of [["another", false], ["back", true]])
      $(id).addEventListener("click", () => {
        lock(yes);
        refresh(!yes);
      });
    addEventListener("beforeunload", (event) => saved === false && event.preventDefault());
    addEventListener("resize", () => shown?.risk && drawRisk($("chart"), $("legend"), shown.risk, { label: start.label }));
  }

  function setUp() {
    $("data").textContent = `${start.name}: ${whole(start.nodes)} junctions, ${whole(start.edges)} street segments`;
    $("sigma-note").textContent = `standard deviation, in ${start.label}; δ = ${power(start.delta)}, sensitivity ${HushWords.sensitivity(start.sensitivity_squared)}`;
    for (const { name, title } of start.methods) $("method").append(new Option(title, name));
    showMethod();
    $("main").hidden = false;
    $("risk").hidden = start.kind === "private" && !start.release;
    map = HushMap.create($("map"), {
      graph,
      maps: [{ title: "Streets", values: new Float32Array(graph.n), note: "public; no counts shown" }],
      label: `${start.label} per junction`,
      name: "Maps of the noisy and the denoised signal",
    });
    if (start.kind === "private" && !start.release) {
      const [head, text] = [document.createElement("strong"), document.createElement("span")];
      head.textContent = "No map yet, on purpose";
      text.textContent = "Your counts were read and stay in memory. Moving the slider changes numbers only, since every map drawn from private counts is a release that must be paid for. The first map you see here will be the release.";
      $("unseen").prepend(head, text);
      $("unseen").hidden = false;
      $("map").classList.add("empty");
    }
    setEpsilon(start.release?.epsilon ?? start.epsilon.start);
    if (start.kind === "private" && start.release) saved = Boolean(start.kept);
    lock(Boolean(start.release));
    showBudget(start.budget);
  }

  async function open() {
    try {
      start = await (await ask("start")).json();
      graph = await HushMap.unpackGraph(start.graph);
    } catch (fault) {
      return say(fault.message, true);
    }
    setUp();
    listen();
    return refresh(mode() === "first"); // what it would cost is known soon
  }

  open();
})();
