/* Search on the map: for names of streets and zones, for crossings ("33 st / 8 av") and for labels of nodes.

   A box with a list of matches (an ARIA combobox): typing lists them, the arrow keys choose, Enter centres and marks, Escape clears. */

"use strict";

const HushMapSearch = (() => {
  const MOST = 8; // matches in the list

  const folded = (text) => text.toLowerCase().normalize("NFD").replace(/\p{M}/gu, "").trim();

  /* Texts that contain what was typed, by their position: first those that begin with it, then those with a word that does, then the rest. */
  function ranked(texts, typed, most) {
    const found = [[], [], []];
    for (let k = 0; k < texts.length; k++) {
      const at = texts[k].indexOf(typed);
      if (at >= 0) found[at === 0 ? 0 : texts[k][at - 1] === " " ? 1 : 2].push(k);
    }
    const byLength = (a, b) => texts[a].length - texts[b].length || (texts[a] < texts[b] ? -1 : 1);
    return found.flatMap((some) => some.sort(byLength)).slice(0, most);
  }

  /* The function from typed text to matches, {text, nodes}, for one graph. */
  function finder(graph) {
    const { names, labels, n } = graph;
    const places = names ? names.texts.map(folded) : [];
    const ids = (labels ?? []).map((label) => folded(`${label}`));
    const nodesOf = (code) => {
      const nodes = [];
      for (let i = 0; i < n; i++) if (names.codes.some((codes) => codes[i] === code)) nodes.push(i);
      return nodes;
    };
    const crossings = (parts) => {
      const wanted = parts.map((part) => new Set(ranked(places, part, Infinity)));
      const nodes = [];
      for (let i = 0; i < n && nodes.length < MOST; i++) {
        const codes = names.codes.map((column) => column[i]);
        if ([codes, [...codes].reverse()].some((pair) => wanted.every((set, k) => set.has(pair[k])))) nodes.push(i);
      }
      return nodes;
    };
    return (query) => {
      const typed = folded(query);
      if (!typed) return [];
      const parts = typed.split(/\s*(?:\/|&|\band\b)\s*/).filter(Boolean);
      if (parts.length === 2 && names) return crossings(parts).map((node) => ({ text: HushMapText.nodeName(graph, node), nodes: [node] }));
      const streets = ranked(places, typed, MOST).map((code) => ({ text: names.texts[code], nodes: nodesOf(code) }));
      const nodes = ranked(ids, typed, MOST - streets.length).map((node) => {
        const name = HushMapText.nodeName(graph, node);
        return { text: name === `${labels[node]}` ? name : `${labels[node]}, ${name}`, nodes: [node] };
      });
      return [...streets, ...nodes];
    };
  }

  const make = (tag, attributes, parent) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    parent?.append(element);
    return element;
  };

  let boxes = 0; // on the page, for ids that differ

  /* Adds the box to `parent`; goTo(nodes, text) is called with a match, and with no nodes when the box is cleared. */
  function create(parent, on, goTo) {
    const id = `hush-map-matches-${++boxes}`;
    const holder = make("div", { class: "hush-map-search" }, parent);
    const box = make("input", { type: "search", role: "combobox", placeholder: "Find a place", "aria-label": "Find a place on the map", "aria-expanded": "false", "aria-controls": id, "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false", maxlength: "80" }, holder);
    const list = make("ul", { id, role: "listbox", "aria-label": "Places found", class: "hush-map-matches" }, holder);
    const status = make("span", { role: "status", class: "hush-map-unseen" }, holder);
    let [find, matches, active] = [() => [], [], -1];
    list.hidden = true;

    function show(next, chosen = -1) {
      [matches, active] = [next, chosen];
      list.hidden = !matches.length;
      box.setAttribute("aria-expanded", !list.hidden);
      list.replaceChildren(...matches.map(({ text }, k) => Object.assign(make("li", { role: "option", id: `${id}-${k}`, "aria-selected": k === active }), { textContent: text })));
      if (active < 0) box.removeAttribute("aria-activedescendant");
      else box.setAttribute("aria-activedescendant", `${id}-${active}`);
    }

    function choose(k) {
      const match = matches[k];
      if (!match) return;
      box.value = match.text;
      show([]);
      status.textContent = "";
      goTo(match.nodes, match.text);
    }

    on(box, "input", () => {
      show(find(box.value));
      status.textContent = !folded(box.value) ? "" : matches.length ? `${matches.length} found` : "Nothing found";
      if (!box.value) goTo([], "");
    });
    on(box, "keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step && matches.length) show(matches, (active + step + matches.length + (active < 0 && step < 0)) % matches.length);
      else if (event.key === "Enter") {
        if (!matches.length) show(find(box.value));
        choose(Math.max(active, 0));
      } else if (event.key === "Escape") {
        if (list.hidden) box.value = "";
        show([]);
        if (!box.value) goTo([], "");
      } else return;
      event.preventDefault();
    });
    on(box, "blur", () => show([]));
    on(list, "pointerdown", (event) => {
      event.preventDefault(); // the box stays focused until the match is chosen
      choose([...list.children].indexOf(event.target));
    });

    /* Searches another graph; without names and labels there is nothing to find. */
    return (graph) => {
      holder.hidden = !graph.names && !graph.labels;
      find = finder(graph);
      box.value = "";
      show([]);
    };
  }

  return { create, finder };
})();
