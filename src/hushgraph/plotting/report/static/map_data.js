/* Data of the map: it unpacks numbers and graphs, and prepares a graph once, so that the node nearest to a pointer and the edges in
   view are found fast. The packed form is written by hushgraph.plotting (report/packing.py). Nothing is drawn here. */

"use strict";

const HushMapData = (() => {
  const CHUNK = 512; // consecutive edges that share a bounding box

  // ---- packed numbers: fixed-point, differences, zigzag, byte planes, zlib, base64 --------------------------------------

  async function inflate(text) {
    const raw = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  async function unpackInto(packed, Kind) {
    const planes = await inflate(packed.data);
    const { count, bytes, step, start, difference } = packed;
    const values = new Kind(count);
    for (let i = 0, sum = 0; i < count; i++) {
      let zigzag = 0;
      for (let b = 0, at = i; b < bytes; b++, at += count) zigzag |= planes[at] << (8 * b);
      const integer = (zigzag >>> 1) ^ -(zigzag & 1);
      sum = difference ? sum + integer : integer;
      values[i] = start + step * sum;
    }
    return values;
  }

  async function unpack(packed) {
    const values = await unpackInto(packed, Float32Array);
    if (packed.missing) for (const i of await unpackInto(packed.missing, Uint32Array)) values[i] = NaN;
    return values;
  }

  async function unpackGraph(packed) {
    const [x, y, degrees, offsets] = await Promise.all([
      unpackInto(packed.x, Float32Array),
      unpackInto(packed.y, Float32Array),
      unpackInto(packed.degrees, Uint32Array),
      unpackInto(packed.offsets, Uint32Array),
    ]);
    const ends = new Uint32Array(2 * offsets.length);
    for (let i = 0, e = 0; i < degrees.length; i++) {
      for (const last = e + degrees[i]; e < last; e++) {
        ends[2 * e] = i;
        ends[2 * e + 1] = i + offsets[e];
      }
    }
    const bends = packed.bends ? await unpackBends(packed.bends, offsets.length) : null;
    const outlines = packed.outlines ? await unpackOutlines(packed.outlines) : null;
    const labels = packed.labels ? await unpackTexts(packed.labels) : null;
    const names = packed.names ? await unpackNames(packed.names) : null;
    const backdrop = packed.backdrop ? await unpackBackdrop(packed.backdrop) : null;
    return { n: x.length, x, y, ends, bends, labels, names, outlines, backdrop, metres: packed.metres, latitude: packed.latitude };
  }

  const unpackTexts = async (packed) => JSON.parse(new TextDecoder().decode(await inflate(packed)));

  /* Names of streets or zones: node i has the names texts[codes[k][i]], where that is not -1. */
  async function unpackNames({ texts, codes }) {
    return { texts: await unpackTexts(texts), codes: await Promise.all(codes.map((column) => unpackInto(column, Int32Array))) };
  }

  const startsOf = (sizes) => sizes.reduce((starts, size, r) => ((starts[r + 1] = starts[r] + size), starts), new Uint32Array(sizes.length + 1));

  /* Where streets bend: edge e bends at the points starts[line[e]] to starts[line[e] + 1], unless line[e] is -1. */
  async function unpackBends(packed, m) {
    const [x, y] = await Promise.all([packed.x, packed.y].map((axis) => unpackInto(axis, Float32Array)));
    const [sizes, edges] = await Promise.all([packed.sizes, packed.edges].map((column) => unpackInto(column, Uint32Array)));
    const line = new Int32Array(m).fill(-1);
    edges.forEach((e, k) => (line[e] = k));
    return { x, y, starts: startsOf(sizes), line };
  }

  /* Water, parks and borders beneath the map, see map_backdrop.js. */
  async function unpackBackdrop(packed) {
    const [x, y] = await Promise.all([packed.x, packed.y].map((axis) => unpackInto(axis, Float32Array)));
    const [sizes, kinds] = await Promise.all([packed.sizes, packed.kinds].map((column) => unpackInto(column, Uint32Array)));
    return { x, y, starts: startsOf(sizes), kinds };
  }

  /* The rings of zones: corners x and y; ring r has the corners starts[r] to starts[r + 1], and belongs to node nodes[r]. */
  async function unpackOutlines(packed) {
    const [x, y, sizes, nodes] = await Promise.all([
      unpackInto(packed.x, Float32Array),
      unpackInto(packed.y, Float32Array),
      unpackInto(packed.sizes, Uint32Array),
      unpackInto(packed.nodes, Uint32Array),
    ]);
    return { x, y, starts: startsOf(sizes), nodes };
  }

  /* Height over width of a map, within what a page has room for; coordinates begin at 0. */
  function shapeOf(graph) {
    const extent = (axis) => axis.reduce((most, v) => Math.max(most, v), 0);
    const { x, y } = graph.outlines ?? graph;
    return Math.min(Math.max(extent(y) / (extent(x) || 1), 0.4), 1.7);
  }

  // ---- preparation, once for a graph -----------------------------------------------------------------------------

  function prepare(graph) {
    if (graph.outlines) return prepareZones(graph);
    const { n, x, y } = graph;
    const isolated = new Uint8Array(n).fill(1);
    for (const i of graph.ends) isolated[i] = 0;
    const dots = [];
    for (let i = 0; i < n; i++) if (isolated[i]) dots.push(i, i); // a node without edges is drawn as an edge of length 0: a dot
    const ends = new Uint32Array(graph.ends.length + dots.length);
    ends.set(graph.ends);
    ends.set(dots, graph.ends.length);
    const box = [Infinity, Infinity, -Infinity, -Infinity];
    for (let i = 0; i < n; i++) {
      if (x[i] < box[0]) box[0] = x[i];
      if (y[i] < box[1]) box[1] = y[i];
      if (x[i] > box[2]) box[2] = x[i];
      if (y[i] > box[3]) box[3] = y[i];
    }
    if (!n) box.splice(0, 4, 0, 0, 1, 1);
    const m = ends.length / 2;
    const boxes = new Float32Array(4 * Math.ceil(m / CHUNK));
    const lengths = [];
    for (let c = 0; c < boxes.length / 4; c++) {
      let [left, low, right, high] = [Infinity, Infinity, -Infinity, -Infinity];
      for (let k = 2 * c * CHUNK; k < Math.min(2 * m, 2 * (c + 1) * CHUNK); k++) {
        const i = ends[k];
        left = Math.min(left, x[i]);
        right = Math.max(right, x[i]);
        low = Math.min(low, y[i]);
        high = Math.max(high, y[i]);
      }
      boxes.set([left, low, right, high], 4 * c);
    }
    for (let e = 0, hop = Math.ceil(m / 4000) || 1; e < m; e += hop) lengths.push(Math.hypot(x[ends[2 * e]] - x[ends[2 * e + 1]], y[ends[2 * e]] - y[ends[2 * e + 1]]));
    const length = lengths.sort((a, b) => a - b)[lengths.length >> 1] || Math.max(box[2] - box[0], box[3] - box[1]) / Math.sqrt(n + 1) || 1;
    return { ...graph, ends, m, box, boxes, length, grid: gridOf(n, x, y, box) };
  }

  /* Zones: a box for each, and its rings; `m` counts zones where it counts edges in other graphs. */
  function prepareZones(graph) {
    const { n, outlines } = graph;
    const { x, y, starts, nodes } = outlines;
    const boxes = new Float32Array(4 * n);
    for (let i = 0; i < n; i++) boxes.set([Infinity, Infinity, -Infinity, -Infinity], 4 * i);
    const firstRing = new Uint32Array(n + 1); // rings are in the order of their nodes
    const box = [Infinity, Infinity, -Infinity, -Infinity];
    for (let r = 0; r < nodes.length; r++) {
      const at = 4 * nodes[r];
      firstRing[nodes[r] + 1]++;
      for (let k = starts[r]; k < starts[r + 1]; k++) {
        boxes[at] = Math.min(boxes[at], x[k]);
        boxes[at + 1] = Math.min(boxes[at + 1], y[k]);
        boxes[at + 2] = Math.max(boxes[at + 2], x[k]);
        boxes[at + 3] = Math.max(boxes[at + 3], y[k]);
      }
      for (const side of [0, 1]) box[side] = Math.min(box[side], boxes[at + side]);
      for (const side of [2, 3]) box[side] = Math.max(box[side], boxes[at + side]);
    }
    for (let i = 0; i < n; i++) firstRing[i + 1] += firstRing[i];
    const widths = Float32Array.from({ length: n }, (_, i) => Math.max(boxes[4 * i + 2] - boxes[4 * i], boxes[4 * i + 3] - boxes[4 * i + 1]));
    return { ...graph, m: n, box, boxes, firstRing, length: widths.sort()[n >> 1] || 1 };
  }

  /* The zone that contains (px, py): a ray to the right crosses its sides an odd number of times; -1 if there is none. */
  function zoneAt(graph, px, py) {
    const { boxes, firstRing, outlines } = graph;
    const { x, y, starts } = outlines;
    for (let i = 0; i < graph.n; i++) {
      if (px < boxes[4 * i] || py < boxes[4 * i + 1] || px > boxes[4 * i + 2] || py > boxes[4 * i + 3]) continue;
      let odd = false;
      for (let r = firstRing[i]; r < firstRing[i + 1]; r++) {
        for (let k = starts[r], last = starts[r + 1] - 1; k < starts[r + 1]; last = k++) {
          if (y[k] > py !== y[last] > py && px < x[k] + ((py - y[k]) / (y[last] - y[k])) * (x[last] - x[k])) odd = !odd;
        }
      }
      if (odd) return i;
    }
    return -1;
  }

  /* Nodes by square cells, to find the node nearest to a pointer. */
  function gridOf(n, x, y, box) {
    const [wide, high] = [box[2] - box[0] || 1, box[3] - box[1] || 1];
    const size = Math.max(Math.sqrt((wide * high * 4) / Math.max(n, 1)), wide / 2000, high / 2000);
    const [columns, rows] = [Math.floor(wide / size) + 1, Math.floor(high / size) + 1];
    const cell = (px, py) => Math.floor((py - box[1]) / size) * columns + Math.floor((px - box[0]) / size);
    const first = new Uint32Array(columns * rows + 1);
    for (let i = 0; i < n; i++) first[cell(x[i], y[i]) + 1]++;
    for (let c = 0; c < columns * rows; c++) first[c + 1] += first[c];
    const [nodes, next] = [new Uint32Array(n), first.slice()];
    for (let i = 0; i < n; i++) nodes[next[cell(x[i], y[i])]++] = i;
    return { size, columns, rows, first, nodes };
  }

  /* The node nearest to (px, py) within `reach`, or the zone that contains it; -1 if there is none. */
  function nearest(graph, px, py, reach) {
    if (graph.outlines) return zoneAt(graph, px, py);
    const { size, columns, rows, first, nodes } = graph.grid;
    const column = (v) => Math.floor((v - graph.box[0]) / size);
    const row = (v) => Math.floor((v - graph.box[1]) / size);
    let [best, least] = [-1, reach * reach];
    for (let r = Math.max(0, row(py - reach)); r <= Math.min(rows - 1, row(py + reach)); r++) {
      for (let c = Math.max(0, column(px - reach)); c <= Math.min(columns - 1, column(px + reach)); c++) {
        for (let k = first[r * columns + c]; k < first[r * columns + c + 1]; k++) {
          const distance = (graph.x[nodes[k]] - px) ** 2 + (graph.y[nodes[k]] - py) ** 2;
          if (distance <= least) [best, least] = [nodes[k], distance];
        }
      }
    }
    return best;
  }

  /* Mean of the values at both ends of each edge; the value at one end if the other has none. The values themselves for zones. */
  function edgeValues(graph, values) {
    if (graph.outlines) return values;
    const means = new Float32Array(graph.m);
    for (let e = 0; e < graph.m; e++) {
      const a = values[graph.ends[2 * e]], b = values[graph.ends[2 * e + 1]];
      means[e] = Number.isNaN(a) ? b : Number.isNaN(b) ? a : (a + b) / 2;
    }
    return means;
  }

  function zonesIn({ n, boxes }, left, low, right, high) {
    const visible = new Uint32Array(n);
    let count = 0;
    for (let i = 0; i < n; i++) if (boxes[4 * i] <= right && boxes[4 * i + 2] >= left && boxes[4 * i + 1] <= high && boxes[4 * i + 3] >= low) visible[count++] = i;
    return visible.subarray(0, count);
  }

  /* Edges, or zones, that may cross a rectangle. */
  function edgesIn(graph, left, low, right, high) {
    if (graph.outlines) return zonesIn(graph, left, low, right, high);
    const { x, y, ends, boxes, m } = graph;
    const visible = new Uint32Array(m);
    let count = 0;
    for (let c = 0; c < boxes.length / 4; c++) {
      if (boxes[4 * c] > right || boxes[4 * c + 2] < left || boxes[4 * c + 1] > high || boxes[4 * c + 3] < low) continue;
      for (let e = c * CHUNK; e < Math.min(m, (c + 1) * CHUNK); e++) {
        const i = ends[2 * e], j = ends[2 * e + 1];
        if ((x[i] < left && x[j] < left) || (x[i] > right && x[j] > right)) continue;
        if ((y[i] < low && y[j] < low) || (y[i] > high && y[j] > high)) continue;
        visible[count++] = e;
      }
    }
    return visible.subarray(0, count);
  }

  return { unpack, unpackGraph, shapeOf, prepare, nearest, edgeValues, edgesIn };
})();
