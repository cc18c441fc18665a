// Draws the processes with their sockets and endpoints, and a link from each endpoint that connects
// to the one that it leads to. Messages mostly go from left to right. A narrow window has one column.

import { endOf, endpointOf } from './rows.js';
import { draw, make, short, span } from './text.js';

// Processes and endpoints that are drawn. The rest is counted.
const SHOWN = 40, ENDPOINTS = 6;
// Least width of a column, and the gap between two, in pixels: as in page.css.
const COLUMN = 200, GAP = 70;
// Processes in a column before it is split.
const TALL = 9;
const LEVELS = ['good', 'some', 'bad'];
const SOURCES = ['PUSH', 'PUB', 'XPUB', 'REQ', 'CLIENT', 'SCATTER', 'RADIO'];
const SINKS = ['PULL', 'SUB', 'XSUB', 'REP', 'SERVER', 'GATHER', 'DISH'];

const port = name => (/^(tcp|tls\+tcp|wss?|udp):\/\/.*?:(\d+)/.exec(name) || [])[2];
const isHere = name => /^(tcp|tls\+tcp|wss?):\/\/(127\.|localhost|\[::1\])/.test(name);

// True if a connected endpoint leads to a bound one: the same name, or the same port of this host.
function leads(from, end, row, bound) {
  const [name, other] = [endpointOf(end), endpointOf(bound)];
  if (name.startsWith('inproc:') && from.process !== row.process) return false;
  return name === other || isHere(name) && port(name) !== undefined && port(name) === port(other);
}

function linksOf(rows) {
  const links = [], running = rows.filter(row => row.process.runs);
  for (const from of running) {
    for (const end of from.endpoints.filter(one => !one.bound)) {
      let to, bound;
      for (const row of running) {
        bound = row !== from && row.endpoints.find(one => one.bound && leads(from, end, row, one));
        if (bound) { to = row; break; }
      }
      if (!to) {
        const peer = from.peers.find(one => one.connected_here && one.endpoint === endpointOf(end) && endOf(one));
        to = peer && running.find(row => row.process === endOf(peer).process && row.socket.id === endOf(peer).socket);
      }
      if (to) links.push({ from, end, to, bound: bound || undefined, bad: end.failures > 0 });
    }
  }
  return links;
}

// Puts each process right of the processes whose messages it gets. Ignores links that close a circle.
function levelsOf(processes, links) {
  const next = new Map(processes.map(process => [process, new Set()]));
  const reaches = (from, to) => from === to || [...next.get(from)].some(one => reaches(one, to));
  for (const { from, to } of links) {
    const back = SINKS.includes(from.socket.type_name) || SOURCES.includes(to.socket.type_name);
    const [source, sink] = back ? [to.process, from.process] : [from.process, to.process];
    if (!reaches(sink, source)) next.get(source).add(sink);
  }
  const level = new Map(processes.map(process => [process, 0]));
  for (let moved = true; moved;) {
    moved = false;
    for (const [source, sinks] of next) {
      for (const sink of sinks) {
        if (level.get(sink) <= level.get(source)) { level.set(sink, level.get(source) + 1); moved = true; }
      }
    }
  }
  return level;
}

// Places each process of a column near the processes that it has links to, so that few links cross.
// Linked processes come first.
function arrange(columns, links) {
  const near = new Map();
  for (const { from, to } of links) {
    for (const [a, b] of [[from.process, to.process], [to.process, from.process]]) near.set(a, [...near.get(a) || [], b]);
  }
  const place = new Map();
  const settle = column => column.forEach((process, at) => place.set(process, (at + 0.5) / column.length));
  columns.forEach(settle);
  for (const column of [...columns.slice(1), ...columns.slice(0, -1).reverse()]) {
    const want = new Map(column.map(process => {
      const others = near.get(process) || [];
      return [process, others.length ? others.reduce((sum, one) => sum + place.get(one), 0) / others.length : 2];
    }));
    column.sort((a, b) => want.get(a) - want.get(b));
    settle(column);
  }
}

// Distributes the processes to the columns that fit. If there is room, a level with many processes
// gets several columns.
function columnsOf(processes, level, links, width) {
  const fits = Math.max(1, Math.floor((width + GAP) / (COLUMN + GAP)));
  const levels = 1 + Math.max(0, ...level.values());
  let columns = [];
  for (const process of processes) (columns[Math.floor(level.get(process) * Math.min(1, fits / levels))] ||= []).push(process);
  columns = columns.filter(Boolean);
  if (columns.length > 1) arrange(columns, links);
  while (columns.length < fits) {
    const at = columns.findIndex(column => column.length > TALL);
    if (at < 0) break;
    const column = columns[at], half = Math.ceil(column.length / 2);
    columns.splice(at, 1, column.slice(0, half), column.slice(half));
  }
  return columns;
}

const figures = rates => [rates.out > 0 ? `out ${short(rates.out)}/s` : '', rates.in > 0 ? `in ${short(rates.in)}/s` : ''].filter(Boolean).join(' ');

function endpointBox(process, end) {
  // A process that has ended has no faults.
  const isBad = process.runs && (end.failures > 0 || end.state === 'failed');
  const fault = isBad ? ': ' + (end.reason || 'no connection') : '';
  const text = `${end.bound ? 'bound to' : 'to'} ${endpointOf(end)}${fault}`;
  return make('div', { class: 'endpoint ' + (isBad ? 'bad' : 'dim'), textContent: text, title: text });
}

function boxOf(process, rows, places, chosen, choose) {
  const old = rows.find(row => row.isOld), box = make('div', { class: process.runs ? 'box' : 'box ended' });
  const state = !process.runs ? ' ' + process.end : old ? ` counters ${span(old.age)} old` : '';
  box.append(make('div', { title: `${process.program} ${process.name}${state}` }, make('b', { textContent: process.program }), ` ${process.name}`,
    make('span', { class: process.runs ? 'some' : 'dim', textContent: state })));
  for (const row of rows) {
    const level = process.runs ? LEVELS[row.level] : 'dim';
    box.append(make('div', { class: 'socket' + (row.key === chosen ? ' chosen' : ''), title: row.what, onclick: () => choose(row.key) },
      make('span', { class: 'dot ' + level }), `${row.socket.id} ${row.socket.type_name}`, make('span', { class: 'dim rate', textContent: figures(row.rates) })));
    places.set(row, box.lastChild);
    for (const end of row.endpoints.slice(0, ENDPOINTS)) {
      box.append(endpointBox(process, end));
      places.set(end, box.lastChild);
    }
    const more = row.endpoints.length - ENDPOINTS;
    if (more > 0) box.append(make('div', { class: 'endpoint dim', textContent: `and ${more} more` }));
  }
  return box;
}

function curve(link, places, frame) {
  const spot = (row, end) => places.get(end) && places.get(end).isConnected ? places.get(end) : places.get(row);
  const [a, b] = [spot(link.from, link.end), spot(link.to, link.bound)].map(node => {
    const box = node.parentNode.getBoundingClientRect(), line = node.getBoundingClientRect();
    return { left: box.left - frame.left, right: box.right - frame.left, y: line.top + line.height / 2 - frame.top };
  });
  let d;
  if (a.left < b.right && b.left < a.right) {
    const bend = Math.min(34, 12 + Math.abs(a.y - b.y) / 10);
    d = `M${a.left},${a.y} C${a.left - bend},${a.y} ${b.left - bend},${b.y} ${b.left},${b.y}`;
  } else {
    const [from, to] = a.left < b.left ? [a.right, b.left] : [a.left, b.right], half = (from + to) / 2;
    d = `M${from},${a.y} C${half},${a.y} ${half},${b.y} ${to},${b.y}`;
  }
  const width = 1 + Math.min(4, Math.log10(1 + link.from.rates.out + link.from.rates.in));
  return draw('path', { class: 'link' + (link.bad ? ' bad' : ''), d, 'stroke-width': width }, draw('title', {}, endpointOf(link.end)));
}

export function drawGraph(place, processes, rows, chosen, choose) {
  if (!processes.length) {
    place.replaceChildren(make('p', { class: 'dim', textContent: 'No process of this user is observed: start one with TAUT_OBSERVE=1, or with taut run --observe.' }));
    return;
  }
  const own = new Map(processes.map(process => [process, rows.filter(row => row.process === process)]));
  const worst = process => Math.max(0, ...own.get(process).map(row => row.level));
  const all = [...processes].sort((a, b) => b.runs - a.runs || worst(b) - worst(a)), shown = all.slice(0, SHOWN);
  const links = linksOf(shown.flatMap(process => own.get(process)));
  const columns = columnsOf(shown, levelsOf(shown, links), links, place.clientWidth);
  const places = new Map(), svg = draw('svg', {});
  const columnOf = process => columns.findIndex(column => column.includes(process));
  // Links within the first column go to its left.
  const isBeside = links.some(link => columnOf(link.from.process) === 0 && columnOf(link.to.process) === 0);
  place.className = isBeside ? 'beside' : '';
  place.replaceChildren(svg, ...columns.map(column => make('div', { class: 'column' }, ...column.map(process => boxOf(process, own.get(process), places, chosen, choose)))));
  const frame = svg.getBoundingClientRect();
  svg.append(...links.map(link => curve(link, places, frame)));
  if (all.length > shown.length) {
    place.lastChild.append(make('p', { class: 'dim', textContent: `and ${all.length - shown.length} more processes: see the table below` }));
  }
}
