/* The page of the explorer. The server decides what may be shown; this file sends requests and shows the answers.

   One request runs at a time, and only the latest position of the slider counts: while it moves a fast method answers without guides,
   and when it rests the chosen method with them. On private events the slider changes numbers only; maps come with a release. */

"use strict";

(() => {
  const $ = (id) => document.getElementById(id);
  const REST = 350; // milliseconds without a movement after which the chosen method is requested
  const STEPS = 200; // of the slider
  let session; // the answer of the server to "start", updated by later answers
  let graph, map; // the unpacked graph and the map
  let time = null; // the choice of a window, for releases over time windows
  let latest; // the latest answer in this mode
  let epsilon;
  let showsRelease; // a release is shown, and its ε cannot be changed
  let isSaved; // whether the latest release is in a file; undefined if there is none
  let drawnMaps = null; // the maps on the page and the request they answer
  let hasFailed = false; // the latest request
  let pending = null; // the request to send next
  let isRequesting = false;
  let restTimer = 0;
  let abortable = null; // cancels a running request for the chosen method
  let regionNumber = 0; // of the latest region that was outlined

  // ---- the server -------------------------------------------------------------------------------------------------------

  const token = (() => {
    const fromAddress = new URLSearchParams(location.hash.slice(1)).get("token");
    if (fromAddress) {
      sessionStorage.setItem("token", fromAddress); // for a reload of this tab
      history.replaceState(null, "", location.pathname);
    }
    return fromAddress ?? sessionStorage.getItem("token") ?? "";
  })();

  async function send(path, body, signal) {
    const headers = { "X-Hushgraph-Token": token, ...(body && { "Content-Type": "application/json" }) };
    let response;
    try {
      response = await fetch(`/api/${path}`, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Error("The program that this page belongs to does not answer any more. Start it again.");
    }
    if (response.ok) return response;
    const text = await response.text();
    let content = { error: text };
    try {
      content = JSON.parse(text);
    } catch {
      // the answer is plain text
    }
    throw Object.assign(new Error(content.error), { superseded: content.superseded });
  }

  function showStatus(text, bad = false) {
    $("status").textContent = text;
    $("status").classList.toggle("bad", bad);
  }

  const { short, fixed, whole, power, words } = ExplorerText;

  /* Fills a definition list. */
  function fillPairs(list, rows) {
    list.replaceChildren();
    for (const [name, value] of rows) {
      const [term, description] = [document.createElement("dt"), document.createElement("dd")];
      term.textContent = name;
      description.textContent = value;
      list.append(term, description);
    }
  }

  /* "map": a generated or published map is shown; "first" and "another": a release is planned. */
  const mode = () => (session.kind !== "private" || showsRelease ? "map" : session.release ? "another" : "first");

  // ---- epsilon ----------------------------------------------------------------------------------------------------------

  const toSlider = (e) => Math.round((STEPS * Math.log(e / session.epsilon.min)) / Math.log(session.epsilon.max / session.epsilon.min));
  const fromSlider = (s) => +(session.epsilon.min * (session.epsilon.max / session.epsilon.min) ** (s / STEPS)).toPrecision(3);

  function setEpsilon(e) {
    epsilon = +Math.min(Math.max(e, session.epsilon.min), session.epsilon.max).toPrecision(4);
    $("slider").value = toSlider(epsilon);
    $("slider").setAttribute("aria-valuetext", `epsilon ${short(epsilon)}`);
    if (document.activeElement !== $("number")) $("number").value = epsilon;
    showProblem("");
  }

  /* Shows what is wrong with the text in the box of ε. Until it is corrected nothing can be drawn, and the text stays. */
  function showProblem(text) {
    $("fault").textContent = text;
    $("number").setAttribute("aria-invalid", text !== "");
    showDraw();
  }

  function readEpsilon() {
    const problem = ExplorerText.epsilonProblem($("number").value, epsilon, session.epsilon);
    if (problem) showProblem(problem);
    else if (ExplorerText.parseNumber($("number").value) !== epsilon) move(ExplorerText.parseNumber($("number").value));
    else showProblem("");
  }

  function move(e) {
    setEpsilon(e);
    refresh(true);
  }

  // ---- one request at a time -------------------------------------------------------------------------------------

  const settings = () => ({
    epsilon,
    method: $("method").value,
    rule: $("rule").value,
    refine: $("refine").checked,
    nonnegative: $("nonnegative").checked,
    integer: $("integer").checked,
    guides: $("use-guides").checked,
    plan: !showsRelease,
  });

  function refresh(moving = false) {
    clearTimeout(restTimer);
    pending = { ...settings(), moving };
    if (moving) restTimer = setTimeout(refresh, REST);
    abortable?.abort(); // its answer is not needed any more
    sendPending();
  }

  async function sendPending() {
    if (isRequesting) return;
    isRequesting = true;
    while (pending) {
      const [request, draws] = [pending, session.draws];
      [pending, hasFailed] = [null, false];
      if (!request.moving) {
        abortable = new AbortController();
        showStatus("Denoising …");
      }
      try {
        const answer = await (await send("view", request, abortable?.signal)).json();
        if (request.plan === !showsRelease && draws === session.draws) await show(answer, request);
        if (!pending) showStatus("");
      } catch (error) {
        if (error.superseded) restTimer = setTimeout(refresh, 2 * REST); // another window sent a request
        else if (error.name !== "AbortError") {
          hasFailed = true;
          showStatus(error.message, true);
        }
      }
      abortable = null;
    }
    isRequesting = false;
  }

  // ---- showing ----------------------------------------------------------------------------------------------------------

  async function show(answer, request) {
    latest = answer;
    $("sigma").textContent = `σ = ${short(answer.sigma)}`;
    $("guarantee").textContent = answer.guarantee;
    showErrors(answer);
    showGuides();
    showBudget(answer.budget ?? session.budget);
    $("risk").hidden = !answer.risk;
    if (answer.maps) {
      const first = await unpacked(answer.maps[0]);
      if (request.plan !== !showsRelease) return; // the mode changed while the values were unpacked
      drawnMaps = { first, packed: answer.maps, request, isGuided: Boolean(answer.guides) };
      await showMaps();
      showDraw();
      clearRegion();
      $("unseen").hidden = true;
      $("map").classList.remove("empty");
    }
    if (answer.risk) {
      showRisk();
      showRiskNote(answer);
    }
    document.body.dataset.shown = `${answer.epsilon} ${answer.method}${answer.guides ? " guided" : ""}${answer.settled ? "" : " moving"}`;
  }

  async function unpacked(packed) {
    const values = {};
    for (const name of Object.keys(packed)) values[name] = await HushMap.unpack(packed[name]);
    return values;
  }

  function layersOf({ noisy, denoised, error = null, lower, upper }) {
    const notes = [session.kind === "generated" ? "as it would be published" : "as published", drawnMaps.isGuided ? "from the noisy map and guides" : "from the noisy map alone"];
    if (mode() === "another") notes.fill(ExplorerText.releaseTitle(session)); // the controls show the plan of another release
    const none = new Float32Array(0); // while the slider moves there are no intervals, but the list of layers stays
    return [
      { name: "noisy", title: "Noisy", values: noisy, note: notes[0] },
      { name: "denoised", title: "Denoised", values: denoised, lower, upper, note: notes[1] },
      { name: "error", title: "Expected error", values: error, colours: "error" },
      ...HushMap.intervalLayers(lower ?? none, upper ?? none).map((layer) => ({ ...layer, values: lower ? layer.values : null })),
    ];
  }

  async function showMaps() {
    if (time && drawnMaps) await time.refresh();
    else if (drawnMaps) map.setLayers(layersOf(drawnMaps.first));
  }

  /* The chart is drawn when it is unfolded: before that it has no width. */
  function showRisk() {
    if (latest?.risk && $("experts").open) drawRisk($("chart"), $("legend"), latest.risk, { label: session.label });
  }

  // ---- totals of regions --------------------------------------------------------------------------------------------------

  const MOST_CORNERS = 120;

  function clearRegion() {
    regionNumber++;
    $("region").hidden = mode() !== "map" || !drawnMaps || Boolean(time); // a total is that of one map
    fillPairs($("region-list"), []);
    $("region-note").textContent = "Hold Shift and drag on the map, or:";
    map.setRegion(null);
    startOutline(false);
  }

  function startOutline(isOn) {
    $("region-draw").setAttribute("aria-pressed", isOn);
    map.outlineNext(isOn);
  }

  /* Corners in units of the larger side of the map, from its south-west corner; few enough for one request. */
  function packedRing(ring) {
    const least = (values) => values.reduce((low, value) => Math.min(low, value), Infinity);
    const [left, low] = [least(graph.x), least(graph.y)];
    const size = Math.max(-least(graph.x.map((x) => -x)) - left, -least(graph.y.map((y) => -y)) - low) || 1;
    const step = Math.ceil(ring.length / MOST_CORNERS);
    const share = (value) => +Math.min(Math.max(value / size, -9), 9).toFixed(5);
    return ring.filter((_, k) => k % step === 0).map(([x, y]) => [share(x - left), share(y - low)]);
  }

  async function showRegion(ring) {
    startOutline(false);
    const packed = ring ? packedRing(ring) : [];
    if (packed.length < 3) return clearRegion();
    const number = ++regionNumber;
    fillPairs($("region-list"), []);
    $("region-note").textContent = "Adding up, and measuring the error …";
    let texts;
    try {
      const { moving, ...request } = { ...drawnMaps.request, ring: packed };
      texts = ExplorerText.regionTexts(await (await send("total", request)).json(), session.label, drawnMaps.isGuided);
    } catch (error) {
      texts = [[], error.message];
    }
    if (number !== regionNumber) return undefined; // another region was outlined, or the map changed
    fillPairs($("region-list"), texts[0]);
    $("region-note").textContent = texts[1];
    $("region").scrollIntoView({ block: "nearest" });
    return undefined;
  }

  function showGuides() {
    if ($("guides").hidden) return;
    const takesGuides = session.methods.find((method) => method.name === $("method").value).guides;
    const state = { mode: mode(), isOn: $("use-guides").checked, takesGuides };
    const [rows, note] = ExplorerText.guideTexts(session.guides, latest?.guides, state);
    fillPairs($("guide-list"), rows);
    [...$("guide-list").querySelectorAll("dt")].forEach((term, k) => (term.title = rows[k][2]));
    $("guides-note").textContent = note;
    $("guides-note").title = session.guides.map(({ name, made_from }) => `${name}: ${made_from}`).join("\n");
    $("use-guides").disabled = !takesGuides;
  }

  function showErrors({ errors, region, guides, interval }) {
    const rows = [["noisy", `± ${fixed(errors.noisy)}`]];
    const denoised = errors.denoised === null ? "not known" : errors.below === undefined ? `± ${fixed(errors.denoised)}` : `below ± ${fixed(errors.below)}`;
    rows.push([region ? "denoised, expected" : "denoised, estimated", denoised]);
    if (errors.actual !== undefined) rows.push(["denoised, actual", `± ${fixed(errors.actual)}`]);
    fillPairs($("errors"), rows);
    let note = errors.actual === undefined ? `Estimated from the noisy map ${guides ? "and guides" : "alone"} (SURE), before clipping.` : "The actual error is known only because these counts are generated.";
    if (region) {
      const size = `${whole(region.nodes)} ${words.node}s${region.possible ? "" : ", more than there are"}`;
      note = `On generated counts on these ${words.graph}; your data was not looked at. A total within ${100 * region.reliable} % needs about ${size}.`;
    }
    $("errors-note").textContent = interval ? `${note} ${ExplorerText.intervalNote(interval)}` : note;
  }

  function showRiskNote({ method }) {
    const isPaperMethod = method === "sgwt_sure" && $("rule").value === "james_stein";
    const dot = isPaperMethod ? "The dot is the threshold taken." : "The dot is the threshold of the paper's method.";
    const more = method.startsWith("sgwt") ? "" : " Combined methods use these scales and more.";
    $("risk-note").textContent = `From whole districts to single ${words.node}s. ${dot}${more}`;
  }

  function showBudget(budget) {
    $("budget").hidden = !budget;
    if (!budget) return;
    session.budget = budget;
    const share = (e) => `${Math.min(100, (100 * e) / budget.epsilon)}%`;
    const [spent, next] = $("bar").children;
    spent.style.width = share(budget.spent);
    const isPlan = !showsRelease && budget.spent_after !== undefined;
    next.style.width = isPlan ? share(Math.max(0, Math.min(budget.spent_after, budget.epsilon) - budget.spent)) : "0";
    $("budget-note").textContent = ExplorerText.budgetNote(budget, isPlan);
    $("bar").setAttribute("aria-label", `${short(budget.spent)} of ${short(budget.epsilon)} spent`);
    showDraw();
  }

  // ---- the release ------------------------------------------------------------------------------------------------------

  /* Whether the cost of a release at this ε is known. */
  const hasPlan = () => latest?.budget?.spent_after !== undefined;

  function showDraw() {
    const isPrivate = session.kind === "private";
    const fits = session.budget?.fits !== false;
    $("check-button").hidden = !session.checkable || Boolean(session.release); // only before anything is spent
    $("draw-button").hidden = !isPrivate || showsRelease;
    $("draw-button").disabled = !fits || !hasPlan() || $("fault").textContent !== "";
    $("another").hidden = !isPrivate || !showsRelease;
    $("back").hidden = mode() !== "another";
    $("back").textContent = `Back to release ${session.draws}`;
    $("download").hidden = !isPrivate || !session.release;
    $("download").textContent = showsRelease ? "Download" : "Download it";
    $("download").title = `Download release ${session.draws}`;
    $("download").className = showsRelease ? "primary" : "plain";
    $("save-report").hidden = !drawnMaps || mode() === "another";
    $("certificate").hidden = !session.release || mode() === "another";
    const [note, warning] = ExplorerText.releaseNote(session, { mode: mode(), epsilon, fits });
    $("draw-note").textContent = note;
    $("draw-note").title = isPrivate ? (session.saved_in ?? session.release_folder) : "";
    $("draw-note").classList.toggle("warning", warning);
    if (session.release) fillPairs($("certificate").querySelector("dl"), ExplorerText.certificateRows(session.release.certificate, session.saved_in));
  }

  /* Switches between showing the latest release and planning the next; the answer of the other mode is dropped. */
  function showRelease(isShown) {
    [showsRelease, latest] = [isShown, null];
    $("slider").disabled = $("number").disabled = isShown;
    if (isShown && session.release) setEpsilon(session.release.epsilon);
    else setEpsilon(epsilon);
    $("number").value = epsilon;
    $("guarantee").textContent = ""; // until the next answer
    document.body.dataset.shown = "";
    document.body.dataset.mode = mode();
    for (const [part, title] of Object.entries(ExplorerText.titles(mode()))) $(`${part}-title`).textContent = title;
    showMaps();
    if (map) clearRegion();
    showGuides();
    showDraw();
  }

  function fillItems(list, texts) {
    list.replaceChildren(...texts.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
  }

  /* Shows how the events were counted: requested each time, and removed from the page when the window is closed. */
  async function openCheck() {
    $("check-button").disabled = true;
    showStatus("Reading your events …");
    try {
      const answer = await (await send("check", {})).json();
      $("check-private").textContent = answer.private;
      fillPairs($("check-list"), answer.table.map(([name, number]) => [name, whole(number)]));
      $("check-units").textContent = answer.units;
      fillItems($("check-hints"), answer.hints.map((hint) => `Probably: ${hint}.`));
      fillItems($("check-dropped"), answer.dropped);
      $("check-dropped").parentElement.hidden = !answer.dropped.length;
      $("check-advice").textContent = answer.advice;
      $("check").showModal();
      showStatus("");
    } catch (error) {
      showStatus(error.message, true);
    }
    $("check-button").disabled = false;
  }

  function clearCheck() {
    for (const id of ["check-private", "check-list", "check-units", "check-hints", "check-dropped"]) $(id).replaceChildren();
  }

  async function openConfirm() {
    const isReady = () => hasPlan() && latest.epsilon === epsilon; // the numbers must be those of this ε
    $("draw-button").disabled = true;
    if (!isReady() && !isRequesting) refresh();
    while (!isReady() && !hasFailed && !showsRelease) await new Promise((resolve) => setTimeout(resolve, 50));
    showDraw();
    if (!isReady() || showsRelease) return; // the status line says what is wrong
    const { budget } = latest;
    fillPairs($("confirm-list"), [
      ["Privacy loss ε", `${epsilon}`],
      ["δ", power(session.delta)],
      ["Noise σ", short(latest.sigma)],
      ["Spent so far", `${short(budget.spent)} of ${short(budget.epsilon)}`],
      ["Spent after this", `${short(budget.spent_after)} of ${short(budget.epsilon)}`],
    ]);
    $("confirm-words").textContent = latest.guarantee;
    $("attest-text").textContent = ExplorerText.attestation(session);
    $("keep-text").textContent = `It is saved at once in a new folder of ${session.release_folder}; what is in there may be passed on.`;
    $("attest").checked = false;
    $("go").disabled = true;
    $("confirm-error").textContent = "";
    $("confirm").showModal();
  }

  async function draw() {
    $("go").disabled = true;
    $("go").textContent = "Drawing …";
    try {
      const answer = await (await send("draw", { epsilon, number: session.draws + 1, public_graph: $("attest").checked })).json();
      Object.assign(session, answer);
      isSaved = Boolean(answer.saved_in);
      $("confirm").close();
      showRelease(true);
      refresh();
    } catch (error) {
      $("confirm-error").textContent = error.message;
    } finally {
      $("go").textContent = "Charge and draw";
    }
  }

  async function download() {
    showStatus("Writing the release …");
    try {
      const { epsilon: e, method, nonnegative, integer, guides } = showsRelease || !drawnMaps ? settings() : drawnMaps.request; // with the settings of the maps on the page
      saveFile(await (await send("download", { epsilon: e, method, nonnegative, integer, guides })).blob(), `release-${session.draws}.zip`);
      isSaved = true;
      showStatus("");
    } catch (error) {
      showStatus(error.message, true);
    }
  }

  function saveFile(content, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(content);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  /* The report of the maps on the page; the server makes it from the published or generated map alone. */
  async function saveReport() {
    $("save-report").disabled = true;
    showStatus("Writing the report …");
    try {
      const { moving, ...request } = drawnMaps.request;
      saveFile(await (await send("report", request)).blob(), session.draws ? `report-${session.draws}.html` : "report.html");
      showStatus("");
    } catch (error) {
      showStatus(error.message, true);
    }
    $("save-report").disabled = false;
  }

  // ---- the page ---------------------------------------------------------------------------------------------------------

  function showMethod() {
    const chosen = session.methods.find((method) => method.name === $("method").value);
    const isPrivate = session.kind === "private"; // a release is exported with the default settings of the method
    $("rule-line").hidden = isPrivate || !chosen.rule;
    $("refine-line").hidden = isPrivate || !chosen.refine;
    $("refine").checked = chosen.refine_default;
  }

  function listen() {
    $("slider").addEventListener("input", () => move(fromSlider(+$("slider").value)));
    $("number").addEventListener("input", readEpsilon);
    $("number").addEventListener("change", () => {
      if (!$("fault").textContent) $("number").value = epsilon; // rounded to the digits that are used
    });
    $("method").addEventListener("change", () => {
      showMethod();
      showGuides();
      refresh();
    });
    for (const id of ["rule", "refine", "nonnegative", "integer", "use-guides"]) $(id).addEventListener("change", () => refresh());
    $("region-draw").addEventListener("click", () => startOutline($("region-draw").getAttribute("aria-pressed") !== "true"));
    $("region-view").addEventListener("click", () => {
      map.setRegion(map.corners());
      showRegion(map.corners());
    });
    $("draw-button").addEventListener("click", openConfirm);
    $("check-button").addEventListener("click", openCheck);
    $("check-close").addEventListener("click", () => {
      clearCheck(); // at once: the browser sends "close" a moment later
      $("check").close();
    });
    $("check").addEventListener("close", clearCheck); // the Escape key closes it too
    $("cancel").addEventListener("click", () => $("confirm").close());
    $("attest").addEventListener("change", () => ($("go").disabled = !$("attest").checked));
    $("go").addEventListener("click", draw);
    $("download").addEventListener("click", download);
    for (const [id, isShown] of [["another", false], ["back", true]])
      $(id).addEventListener("click", () => {
        showRelease(isShown);
        refresh(!isShown);
      });
    addEventListener("beforeunload", (event) => isSaved === false && event.preventDefault());
    addEventListener("resize", showRisk);
    $("experts").addEventListener("toggle", showRisk);
    $("save-report").addEventListener("click", saveReport);
    $("windows-details").addEventListener("toggle", () => time?.paint());
  }

  function setUp() {
    if (graph.outlines) ExplorerText.nameZones();
    $("title").textContent = session.title;
    document.title = `${session.title} · hushgraph explorer`;
    $("data").textContent = ExplorerText.graphSize(session);
    $("sigma-note").textContent = `standard deviation, in ${session.label}; δ = ${power(session.delta)}, sensitivity ${ExplorerText.sensitivity(session.sensitivity_squared)}`;
    for (const { name, title } of session.methods) $("method").append(new Option(title, name));
    $("guides").hidden = !session.guides.length;
    showMethod();
    $("main").hidden = false;
    $("risk").hidden = session.kind === "private" && !session.release;
    const texts = { label: `${session.label} per ${words.node}${session.counted === session.label ? "" : ` (${session.counted})`}`, title: session.title };
    map = HushMap.create($("map"), {
      graph,
      layers: [{ name: "graph", title: graph.outlines ? "Zones" : "Streets", values: new Float32Array(graph.n), note: "public; no counts shown" }],
      onRegion: session.windows ? undefined : showRegion,
      onColours: () => time?.paint(),
      unit: session.counted,
      ...texts,
      credit: session.credit,
      name: "Maps of the noisy and the denoised signal",
    });
    $("windows-section").hidden = !session.windows;
    if (session.windows) {
      const read = async (k) => layersOf(await unpacked(drawnMaps.packed[k]));
      time = HushMapTime.create(map, { windows: session.windows, layersOf: read, halfWidth: session.half_width, noun: "time windows", overview: $("windows"), ...texts });
    }
    if (session.kind === "private" && !session.release) {
      const [head, text] = [document.createElement("strong"), document.createElement("span")];
      head.textContent = "No map yet, on purpose";
      text.textContent = "Your counts were read and stay in memory. Moving the slider changes numbers only, since every map made from private counts is a release that is charged. The first map that you see here will be the release.";
      $("unseen").prepend(head, text);
      $("unseen").hidden = false;
      $("map").classList.add("empty");
    }
    setEpsilon(session.release?.epsilon ?? session.epsilon.start);
    if (session.kind === "private" && session.release) isSaved = Boolean(session.saved_in);
    showRelease(Boolean(session.release));
    showBudget(session.budget);
  }

  async function open() {
    try {
      session = await (await send("start")).json();
      graph = await HushMap.unpackGraph(session.graph);
    } catch (error) {
      return showStatus(error.message, true);
    }
    setUp();
    listen();
    return refresh(mode() === "first" || Boolean(time)); // a quick answer, so that the cost is known soon, or many maps are seen soon
  }

  open();
})();
