// Functions that all pages need: they make texts harmless, make figures short and make elements.

// Control, bidi and invisible characters are shown by their codes; letters of any script stay letters.
const HOSTILE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|[\u{e0000}-\u{e007f}]/gu;
const visible = it => it.replace(HOSTILE, c => c === '\r' ? '' : '\\u{' + c.codePointAt(0).toString(16) + '}');
const oneLine = (it, most = 300) => visible(it.slice(0, most * 2).replace(/\s+/g, ' ').trim().slice(0, most));
const brief = n => n < 1000 ? String(n) : n < 999950 ? (n / 1000).toFixed(1).replace(/\.0$/, '') + 'k' : (n / 1e6).toFixed(1).replace(/\.0$/, '') + 'M';
const plural = (n, what) => n + ' ' + (n === 1 ? what : what.replace(/y$/, 'ie') + 's');
const dollars = n => n === null ? '' : n > 0 && n < 0.0005 ? '<$0.001' : '$' + n.toFixed(n > 0 && n < 0.9995 ? 3 : 2);

function lasted(seconds) {
  if (seconds < 60) return seconds + ' s';
  if (seconds < 3600) return Math.floor(seconds / 60) + ' min ' + (seconds % 60) + ' s';
  return Math.floor(seconds / 3600) + ' h ' + Math.floor(seconds % 3600 / 60) + ' min';
}

const SVG = 'http://www.w3.org/2000/svg';
function svg(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// An element with a class and children; texts become text nodes, never markup.
function el(name, kind, ...children) {
  const element = document.createElement(name);
  if (kind) element.className = kind;
  element.append(...children);
  return element;
}
