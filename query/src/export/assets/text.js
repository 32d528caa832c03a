// Texts as one would read them: Markdown, parameters, diffs. Only elements and text nodes are made, never markup.

const INLINE_MOST = 5000, LINES_MOST = 400, DIFF_CELLS_MOST = 400000;
const INLINE = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*(?=\S)([\s\S]*?\S)\*\*|~~(?=\S)([\s\S]*?\S)~~|(?<![\w*])\*(?=[^\s*])([^*]*?[^\s*])\*(?![\w*])|!?\[([^\]\n]*)\]\(([^)\s]+)[^)\n]*\)/;

// Text with code, emphasis and links. A link is told, not made: the page leads nowhere.
function inline(box, it) {
  let rest = it.length > INLINE_MOST ? '' : it;
  if (!rest) { box.append(visible(it)); return box; }
  for (let found = INLINE.exec(rest); found; found = INLINE.exec(rest)) {
    const [whole, , code, strong, gone, soft, label, address] = found;
    box.append(visible(rest.slice(0, found.index)));
    if (code !== undefined) box.append(el('code', '', visible(code)));
    else if (strong !== undefined) box.append(inline(el('strong', ''), strong));
    else if (gone !== undefined) box.append(inline(el('del', ''), gone));
    else if (soft !== undefined) box.append(inline(el('em', ''), soft));
    else box.append(inline(el('span', ''), label), label === address ? '' : el('span', 'address', ' (' + visible(address) + ')'));
    rest = rest.slice(found.index + whole.length);
  }
  box.append(visible(rest));
  return box;
}

const BULLET = /^(\s*)([-*+]|\d{1,9}[.)])\s+/;
const RULE = /^ {0,3}([-*_])\s*(?:\1\s*){2,}$/;
const TABLE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)+\|?\s*$/;
const cellsOf = line => line.trim().replace(/^\||\|$/g, '').split('|').map(cell => cell.trim());

function codeBlock(it, kind) {
  const block = el('pre', kind || '', visible(it));
  block.dir = 'auto';
  block.tabIndex = 0;
  return block;
}

// Markdown as elements: the forms that models write, not all forms.
function markdown(it, depth = 0) {
  const box = el('div', 'markdown');
  box.dir = 'auto';
  const lines = it.replace(/\r/g, '').split('\n');
  if (depth > 6 || lines.length > 20000) { box.append(codeBlock(it)); return box; }
  for (let n = 0; n < lines.length;) {
    const line = lines[n];
    const fence = /^\s*(`{3,}|~{3,})/.exec(line);
    const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/.exec(line);
    if (!line.trim()) { n += 1; continue; }
    if (fence) {
      let end = n + 1;
      while (end < lines.length && !lines[end].trim().startsWith(fence[1])) end += 1;
      box.append(codeBlock(lines.slice(n + 1, end).join('\n')));
      n = end + 1;
    } else if (heading) {
      box.append(inline(el('p', 'heading h' + heading[1].length), heading[2]));
      n += 1;
    } else if (RULE.test(line)) {
      box.append(el('hr', ''));
      n += 1;
    } else if (/^\s*>/.test(line)) {
      let end = n;
      while (end < lines.length && /^\s*>/.test(lines[end])) end += 1;
      const quote = el('blockquote', '');
      quote.append(markdown(lines.slice(n, end).map(quoted => quoted.replace(/^\s*> ?/, '')).join('\n'), depth + 1));
      box.append(quote);
      n = end;
    } else if (BULLET.test(line)) {
      n = bullets(box, lines, n, depth);
    } else if (line.includes('|') && TABLE.test(lines[n + 1] || '')) {
      let end = n + 2;
      while (end < lines.length && lines[end].includes('|')) end += 1;
      const table = el('table', '');
      [line, ...lines.slice(n + 2, end)].forEach((row, number) => {
        table.append(el('tr', '', ...cellsOf(row).map(cell => inline(el(number ? 'td' : 'th', ''), cell))));
      });
      box.append(el('div', 'table', table));
      n = end;
    } else {
      let end = n + 1;
      const ends = next => !next.trim() || BULLET.test(next) || /^\s*(`{3,}|~{3,}|>)/.test(next) || /^ {0,3}#{1,6}\s/.test(next);
      const isTable = at => lines[at].includes('|') && TABLE.test(lines[at + 1] || '');
      while (end < lines.length && !ends(lines[end]) && !isTable(end)) end += 1;
      box.append(inline(el('p', ''), lines.slice(n, end).join('\n')));
      n = end;
    }
  }
  return box;
}

// A list and the lines indented below its entries; gives the line behind it.
function bullets(box, lines, from, depth) {
  const first = BULLET.exec(lines[from]);
  const indent = first[1].length;
  const list = el(/\d/.test(first[2]) ? 'ol' : 'ul', '');
  if (list.nodeName === 'OL') list.start = parseInt(first[2], 10);
  let n = from;
  while (n < lines.length) {
    const bullet = BULLET.exec(lines[n]);
    if (!bullet || bullet[1].length > indent + 1 || bullet[1].length < indent) break;
    const inner = [lines[n].slice(bullet[0].length)];
    n += 1;
    const belongs = line => line.startsWith(' '.repeat(indent + 2)) || (!line.trim() && n + 1 < lines.length && lines[n + 1].startsWith(' '.repeat(indent + 2)));
    while (n < lines.length && belongs(lines[n])) { inner.push(lines[n].slice(Math.min(bullet[0].length, lines[n].search(/\S|$/)))); n += 1; }
    list.append(el('li', '', inner.length === 1 ? inline(el('span', ''), inner[0]) : markdown(inner.join('\n'), depth + 1)));
  }
  box.append(list);
  return n;
}

// Lines of two texts as [' ' | '-' | '+', line]: their common beginning and end, and the longest common run of lines between.
function diffLines(old, next) {
  const a = old === '' ? [] : old.split('\n'), b = next === '' ? [] : next.split('\n');
  let head = 0, tail = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const rows = a.slice(0, head).map(line => [' ', line]);
  const left = a.slice(head, a.length - tail), right = b.slice(head, b.length - tail);
  const width = right.length + 1;
  if (left.length * right.length > DIFF_CELLS_MOST) {
    rows.push(...left.map(line => ['-', line]), ...right.map(line => ['+', line]));
  } else {
    const longest = new Uint32Array((left.length + 1) * width);
    for (let i = left.length - 1; i >= 0; i -= 1) {
      for (let j = right.length - 1; j >= 0; j -= 1) {
        longest[i * width + j] = left[i] === right[j] ? longest[(i + 1) * width + j + 1] + 1 : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
      }
    }
    for (let i = 0, j = 0; i < left.length || j < right.length;) {
      if (i < left.length && j < right.length && left[i] === right[j]) { rows.push([' ', left[i]]); i += 1; j += 1; }
      else if (i < left.length && (j === right.length || longest[(i + 1) * width + j] >= longest[i * width + j + 1])) { rows.push(['-', left[i]]); i += 1; }
      else { rows.push(['+', right[j]]); j += 1; }
    }
  }
  return rows.concat(a.slice(a.length - tail).map(line => [' ', line]));
}

const DIFF_KINDS = { '-': 'gone', '+': 'new', '@': 'place', '*': 'place' };
function diffBlock(rows) {
  const block = el('pre', 'diff');
  block.tabIndex = 0;
  for (const [kind, line] of rows.slice(0, LINES_MOST)) block.append(el('span', DIFF_KINDS[kind] || '', kind + visible(line) + '\n'));
  if (rows.length > LINES_MOST) block.append(el('span', 'place', plural(rows.length - LINES_MOST, 'more line') + '\n'));
  return block;
}

const isPatch = it => it.includes('*** Begin Patch') || /^(diff --git |@@ -\d|--- \S.*\n\+\+\+ )/m.test(it.slice(0, 4000));
const patchBlock = it => diffBlock(it.split('\n').map(line => DIFF_KINDS[line[0]] ? [line[0], line.slice(1)] : [' ', line.replace(/^ /, '')]));

const PAIRS = [['old_string', 'new_string'], ['oldString', 'newString'], ['old_str', 'new_str']];
const CONTENTS = ['content', 'file_text', 'fileText', 'contents'];
const COMMANDS = ['command', 'cmd', 'script'];
const PATCHES = ['patch', 'patchText', 'input', 'diff'];

// Parameters of a call: edits as diffs, commands as commands, other values by name.
function parametersOf(it) {
  const box = el('div', 'parameters');
  let value = null;
  try { value = JSON.parse(it); } catch { /* Not JSON: a patch, or plain text. */ }
  if (!value || typeof value !== 'object' || Array.isArray(value)) {
    const plain = typeof value === 'string' ? value : it;
    box.append(isPatch(plain) ? patchBlock(plain) : codeBlock(plain));
    return box;
  }
  const left = new Map(Object.entries(value));
  const late = [];
  const edit = change => {
    for (const [old, next] of PAIRS) {
      if (change && typeof change[old] === 'string' && typeof change[next] === 'string') {
        late.push(diffBlock(diffLines(change[old], change[next])));
        return [old, next];
      }
    }
    return [];
  };
  for (const used of edit(value)) left.delete(used);
  const edits = left.get('edits');
  if (Array.isArray(edits) && edits.every(change => edit(change).length)) left.delete('edits');
  for (const [name, it] of [...left]) {
    const isText = typeof it === 'string';
    if (PATCHES.includes(name) && isText && isPatch(it)) { late.push(patchBlock(it)); left.delete(name); }
    else if (COMMANDS.includes(name) && (isText || (Array.isArray(it) && it.every(word => typeof word === 'string')))) {
      late.push(codeBlock('$ ' + (isText ? it : it.join(' ')), 'command'));
      left.delete(name);
    } else if (CONTENTS.includes(name) && isText && left.size > 1) { late.push(codeBlock(it)); left.delete(name); }
  }
  for (const [name, it] of left) {
    const said = typeof it === 'string' ? it : JSON.stringify(it);
    const isLong = said.includes('\n') || said.length > 160;
    box.append(el('div', 'parameter', el('span', 'name', visible(name)), ' ', isLong ? codeBlock(said) : el('bdi', '', visible(said))));
  }
  box.append(...late);
  return box;
}

// A text as a conversation shows it: Markdown if a person or a model wrote it, else as it is.
function textBlock(place, prose) {
  const it = text(place), picture = pictureOf(place);
  if (problems.has(place)) return codeBlock(it, 'problem');
  if (picture) {
    const image = el('img', '');
    image.src = picture[2];
    image.alt = it;
    image.loading = 'lazy';
    return el('figure', '', image, el('figcaption', '', it));
  }
  if (prose) return markdown(it);
  return isPatch(it) ? patchBlock(it) : codeBlock(it);
}

// Marks the matches of the search.
function highlight(box, pattern) {
  if (!pattern) return box;
  const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
  const found = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) if (pattern.test(node.data)) found.push(node);
  for (const node of found) {
    let rest = node.data;
    const parts = [];
    for (let hit = pattern.exec(rest); hit && hit[0]; hit = pattern.exec(rest)) {
      parts.push(rest.slice(0, hit.index), el('mark', '', hit[0]));
      rest = rest.slice(hit.index + hit[0].length);
    }
    node.replaceWith(...parts, rest);
  }
  return box;
}
