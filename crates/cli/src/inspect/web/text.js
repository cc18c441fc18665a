// Makes elements, and formats figures and times for people.

export const $ = id => document.getElementById(id);

export function make(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'class') node.className = value; else node[key] = value;
  }
  node.append(...children);
  return node;
}

export function draw(name, attributes, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// 0, 0.05, 1.2, 999, 1 k, 12.3 k
export function short(n) {
  for (const [unit, size] of [['G', 1e9], ['M', 1e6], ['k', 1e3]]) {
    if (n >= size * 0.9995) return +(n / size).toPrecision(3) + ' ' + unit;
  }
  return n >= 10 || n === 0 ? n.toFixed(0) : String(+n.toPrecision(n < 1 ? 1 : 2));
}

// Time in microseconds: 0.3 s, 12 s, 3 min, 2.5 h, 4 d
export function span(us) {
  const s = Math.max(0, us / 1e6);
  if (s < 60) return s.toFixed(s < 3 ? 1 : 0) + ' s';
  if (s < 3600) return (s / 60).toFixed(0) + ' min';
  return s < 172800 ? (s / 3600).toFixed(1) + ' h' : (s / 86400).toFixed(0) + ' d';
}

export const many = (n, what) => `${n} ${what}${n === 1 ? '' : what.endsWith('s') ? 'es' : 's'}`;
export const percent = part => Math.round(part * 100) + ' %';
export const grouped = n => n.toLocaleString('en');
