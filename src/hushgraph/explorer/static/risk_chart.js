/* Estimated risk by threshold: one line per scale, coarse to fine, with a legend; the dot is the minimum.

   drawRisk(element, list, lines, {label}) draws lines [{threshold, risk, taken: [t, risk]}, ...] into an empty block element, and
   their legend into a list.
   Scales differ in colour, in dash and in place, so that no reader depends on colour. */

"use strict";

const drawRisk = (() => {
  const KINDS = 9; // of lines: explorer.css has a colour for each, scale-0 to scale-8
  const DASHES = ["", "7 3", "2 3"];
  const [HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [146, 44, 10, 6, 32];

  function element(kind, attributes, text) {
    const created = document.createElementNS("http://www.w3.org/2000/svg", kind);
    for (const [name, value] of Object.entries(attributes)) created.setAttribute(name, value);
    if (text !== undefined) created.textContent = text;
    return created;
  }

  function ticks(most, count) {
    const rough = most / count;
    const decade = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((f) => f * decade >= rough) * decade;
    return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, k) => +(k * step).toPrecision(6));
  }

  const scaleName = (k, count) => (k === 0 ? "coarsest" : k === count - 1 ? "finest" : `${k + 1}`);

  function writeLegend(list, count) {
    list.replaceChildren();
    for (let k = 0; k < count; k++) {
      const item = document.createElement("li");
      const swatch = element("svg", { width: 26, height: 10, "aria-hidden": "true" });
      swatch.append(element("line", { x1: 1, x2: 25, y1: 5, y2: 5, class: `curve scale-${k % KINDS}`, "stroke-width": 2, "stroke-dasharray": DASHES[k % 3] }));
      item.append(swatch, scaleName(k, count));
      list.append(item);
    }
  }

  return (host, list, lines, { label }) => {
    const width = Math.max(host.clientWidth, 260);
    const end = Math.max(...lines.map((line) => line.threshold.at(-1)), 1e-9);
    const dots = lines.map((line) => line.taken[1]);
    const most = 1.08 * Math.max(...lines.map((line) => line.risk[0]), ...dots, 1e-9);
    const low = Math.min(0, ...dots) * 1.1;
    const x = (t) => LEFT + ((width - LEFT - RIGHT) * t) / end;
    const y = (r) => TOP + ((HEIGHT - TOP - BOTTOM) * (most - Math.min(r, most))) / (most - low);
    const chart = element("svg", { width, height: HEIGHT, role: "img", "aria-label": `Estimated risk by threshold, ${lines.length} scales` });
    for (const t of ticks(end, 6)) {
      chart.append(element("line", { x1: x(t), x2: x(t), y1: TOP, y2: HEIGHT - BOTTOM, class: "grid" }));
      chart.append(element("text", { x: x(t), y: HEIGHT - BOTTOM + 13, "text-anchor": "middle" }, `${t}`));
    }
    for (const r of ticks(most, 4)) {
      chart.append(element("line", { x1: LEFT, x2: width - RIGHT, y1: y(r), y2: y(r), class: "grid" }));
      chart.append(element("text", { x: LEFT - 6, y: y(r) + 4, "text-anchor": "end" }, `${r}`));
    }
    chart.append(element("text", { x: (LEFT + width - RIGHT) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, "threshold / σ"));
    const title = element("text", { transform: `translate(10 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" }, `risk (${label}²)`);
    chart.append(title);
    lines.forEach((line, k) => {
      const above = line.risk.findIndex((r) => r > most); // the line ends there
      const points = line.threshold.slice(0, above < 0 ? undefined : above + 1).map((t, i) => `${x(t).toFixed(1)},${y(line.risk[i]).toFixed(1)}`);
      chart.append(element("polyline", { points: points.join(" "), class: `curve scale-${k % KINDS}`, "stroke-width": 1.8, "stroke-dasharray": DASHES[k % 3] }));
    });
    lines.forEach((line, k) => {
      const dot = element("circle", { cx: x(line.taken[0]), cy: y(line.taken[1]), r: 4.2, class: `dot scale-${k % KINDS}`, "stroke-width": 1.4 });
      dot.append(element("title", {}, `${scaleName(k, lines.length)}: threshold ${line.taken[0].toPrecision(3)} σ`));
      chart.append(dot);
    });
    host.replaceChildren(chart);
    writeLegend(list, lines.length);
  };
})();
