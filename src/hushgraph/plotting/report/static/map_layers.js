/* Layers of the map: which of them can be shown, alone or two together, and what their values look like.

   A layer is {name, title, note, values, lower, upper, colours, span, than}; values are null while they are not known. The first two layers are a pair,
   shown side by side or with a divider between them. */

"use strict";

const HushMapLayers = (() => {
  const { NONE, palette, levelFunction, quantile } = HushMapColours;
  const { roundUp } = HushMapText;

  /* The ways to show these layers: {name, text, shown: [layer names], swipe}. */
  function choices(layers) {
    const single = layers.map(({ name, title }) => ({ name, text: title, shown: [name], swipe: false }));
    if (layers.length < 2) return single;
    const [a, b] = layers;
    const pair = { shown: [a.name, b.name] };
    return [
      { name: "side", text: `${a.title} and ${b.title.toLowerCase()}`, swipe: false, ...pair },
      { name: "swipe", text: `${a.title} or ${b.title.toLowerCase()}: swipe`, swipe: true, ...pair },
      ...single,
    ];
  }

  /* The chosen way; while a layer of it has no values yet, the second layer alone, or the first. */
  function chosenOf(layers, name) {
    const all = choices(layers);
    const values = (layer) => layers.find((one) => one.name === layer).values;
    const isReady = ({ shown }) => shown.every(values);
    const found = all.find((one) => one.name === name) ?? all[0];
    return isReady(found) ? found : (all.find((one) => one.name === layers[1]?.name && isReady(one)) ?? all[0]);
  }

  function levelsOf(means, level) {
    const levels = new Uint8Array(means.length);
    for (let e = 0; e < means.length; e++) levels[e] = Number.isNaN(means[e]) ? NONE : level(means[e]);
    return levels;
  }

  /* The least and the most of values, and the size that ends their colours: few lines have more. */
  function spanOf(means) {
    let [least, most] = [Infinity, -Infinity];
    for (const v of means) {
      if (v < least) least = v;
      if (v > most) most = v;
    }
    return { least, most, size: quantile(means, 0.998) };
  }

  /* The span of several windows together. */
  const joined = (a, b) => (a ? { least: Math.min(a.least, b.least), most: Math.max(a.most, b.most), size: Math.max(a.size, b.size) } : b);

  /* Colours of the layers that are shown. Layers of one kind of colours have one range: that of the pair, so that they can be compared.
     A layer with the span of all windows has the same colours in all of them. */
  function coloured(graph, layers, shown, { page, fixed, edgeValues }) {
    const mean = (one) => (one.means ??= edgeValues(graph, one.values));
    const kind = shown[0].colours ?? "signed";
    const pair = layers.slice(0, 2).filter((one) => one.values && (one.colours ?? "signed") === kind);
    const ranged = kind !== "error" && pair.length ? pair : shown;
    for (const one of [...ranged, ...shown]) one.span ??= spanOf(mean(one));
    const top = roundUp(Math.max(...ranged.map((one) => one.span.size)) || 1);
    const range = fixed ?? (kind === "error" ? [0, top] : [-top, top]);
    const colours = palette(page, kind === "signed" && graph.outlines ? "filled" : kind);
    const level = levelFunction(range, colours.bend);
    for (const one of shown) one.levels = levelsOf(mean(one), level);
    return { range, colours, level };
  }

  /* Layers of the ends of intervals, and of their width. */
  const intervalLayers = (lower, upper) => [
    { name: "lower", title: "Lower end of the interval", values: lower },
    { name: "upper", title: "Upper end of the interval", values: upper },
    { name: "width", title: "Width of the interval", values: upper.map((value, i) => value - lower[i]), colours: "error" },
  ];

  /* The list in which users choose; hidden while there is nothing to choose. */
  function chooser(parent, onChoice) {
    const label = document.createElement("label");
    const list = document.createElement("select");
    label.className = "hush-map-layers";
    label.append("Show ", list);
    parent.append(label);
    list.addEventListener("change", () => onChoice(list.value));
    return (layers, chosen) => {
      const all = choices(layers);
      label.hidden = all.length < 2;
      const texts = all.map(({ name, text }) => `${name} ${text}`).join("\n");
      if (list.dataset.texts !== texts) list.replaceChildren(...all.map(({ name, text }) => new Option(text, name)));
      list.dataset.texts = texts;
      list.value = all.some(({ name }) => name === chosen) ? chosen : all[0].name;
    };
  }

  return { chosenOf, coloured, levelsOf, spanOf, joined, chooser, intervalLayers };
})();
