// The list of operations, `bindings/surface.toml`, and what the package has: the same names, parameters, defaults and errors.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";

import * as acpdb from "acpdb";

const { defaults } = await import(new URL("options.js", import.meta.resolve("acpdb")));

const file = ["../../surface.toml", "../surface.toml"].map((path) => new URL(path, import.meta.url)).find((path) => existsSync(path));
assert.ok(file, "surface.toml is above the tests");

/** Tables of the list; it uses headers, texts and lists of texts only. */
function read(source) {
  const tables = {};
  let table;
  for (const line of source.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const header = /^\[(.+)\]$/.exec(line);
    if (header) {
      table = tables[header[1].replaceAll('"', "")] = {};
      continue;
    }
    const [, name, value] = /^(\w+) = (.+)$/.exec(line) ?? assert.fail(`a line that the test cannot read: ${line}`);
    table[name] = JSON.parse(value);
  }
  return tables;
}

const tables = read(readFileSync(file, "utf8"));
const listed = Object.fromEntries(
  Object.entries(tables).filter(([name]) => name.startsWith("operations.")).map(([name, row]) => [name.slice(11), row.parameters]),
);

const snake = (name) => name.replace(/_$/, "").replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Names and defaults between the parentheses of a function's source. */
function positional(source) {
  const inner = source.slice(source.indexOf("(") + 1, source.search(/\)\s*\{/));
  const each = inner.split(",").map((part) => part.trim()).filter((part) => part !== "");
  return each.map((part) => {
    const [name, usual] = part.split(" = ");
    return usual === undefined ? snake(name) : `${snake(name)} = ${usual === '""' ? '""' : usual}`;
  });
}

const spelled = (value) => {
  if (value === undefined) return "none";
  return typeof value === "number" && Number.isInteger(value) ? String(value) : JSON.stringify(value);
};

/** All operations of the package, each with its parameters and options. */
function found() {
  const all = {};
  const take = (name, operation) => {
    const parameters = positional(Function.prototype.toString.call(operation));
    all[name] = { parameters: parameters.filter((it) => it !== "options"), options: {} };
    assert.equal(parameters.includes("options"), Object.hasOwn(defaults, name), `${name}: its options are in the table`);
    for (const [option, value] of Object.entries(defaults[name] ?? {})) all[name].options[snake(option)] = spelled(value);
  };
  for (const [name, thing] of Object.entries(acpdb)) {
    if (typeof thing !== "function" || thing.prototype instanceof Error) continue;
    if (!/^class/.test(Function.prototype.toString.call(thing))) {
      take(snake(name), thing);
      continue;
    }
    // `is` and `of` of facts are for the package itself; its declarations do not have them.
    for (const [holder, skip] of [[thing, ["length", "name", "prototype", "is", "of"]], [thing.prototype, ["constructor"]]]) {
      for (const inner of Object.getOwnPropertyNames(holder)) {
        const value = Object.getOwnPropertyDescriptor(holder, inner).value;
        // What iterators of the language have is not of the list.
        if (name === "Subscription" && ["next", "return"].includes(inner)) continue;
        if (!skip.includes(inner) && typeof value === "function") take(`${name}.${snake(inner)}`, value);
      }
    }
  }
  return all;
}

/** A row of the list in the same form. Options that are optional positions here (`key = none`) are told without the default. */
function wanted(parameters) {
  const row = { parameters: [], options: {} };
  let named = false;
  for (const parameter of parameters) {
    const [name, usual] = parameter.split(" = ");
    if (name === "*") named = true;
    else if (named) row.options[name] = usual.replace(/\.0$/, "");
    else row.parameters.push(usual === undefined || usual === "none" ? name : parameter);
    // Behind any number of values everything is named.
    if (name.startsWith("*") && name !== "*") named = true;
  }
  return row;
}

test("operations have the names, parameters and defaults of the list", () => {
  const here = found();
  assert.deepEqual(Object.keys(here).sort(), Object.keys(listed).sort());
  for (const [name, parameters] of Object.entries(listed)) {
    const there = wanted(parameters);
    // A language without named arguments takes several values as a list where options follow.
    const list = Object.keys(there.options).length > 0;
    there.parameters = there.parameters.map((it) => (it.startsWith("*") ? (list ? it.slice(1) : `...${it.slice(1)}`) : it));
    assert.deepEqual(here[name], there, name);
  }
});

test("errors have the names and codes of the list", () => {
  const classes = Object.entries(acpdb).filter(([, thing]) => thing?.prototype instanceof Error);
  const codes = Object.fromEntries(classes.map(([name, thing]) => [name === "AcpdbError" ? "Error" : name, thing.code]));
  assert.deepEqual(codes, tables.errors);
  for (const [name, thing] of classes) {
    const made = new thing("text");
    assert.ok(made instanceof acpdb.AcpdbError && made instanceof Error);
    assert.deepEqual([made.name, made.code, made.message], [name, thing.code, "text"]);
  }
});

test("facts have the fields of the program's lines", () => {
  for (const [name, fact] of Object.entries(tables).filter(([name]) => name.startsWith("facts."))) {
    const { parameters, options } = found()[`Entry.${name.slice(6)}`];
    const named = [...parameters.map((it) => it.split(" = ")[0]), ...Object.keys(options)];
    assert.deepEqual([...fact.fields, ...(fact.only_here ?? [])].sort(), named.sort(), name);
  }
});

/** Interfaces of a declaration file: their fields as the list spells them. */
function declared(source) {
  const words = { string: "text", number: "number", boolean: "flag", Json: "any", "Record<string, Json>": "object" };
  const kind = (type) => {
    if (type.endsWith(" | null")) return `${kind(type.slice(0, -7))}?`;
    if (type.endsWith("[]")) return `[${kind(type.slice(0, -2))}]`;
    return words[type] ?? type;
  };
  const shapes = {};
  for (const [, name, base, body] of source.matchAll(/export interface (\w+)(?: extends (\w+))? \{\n(.*?)^\}/gms)) {
    const own = [...body.matchAll(/^ {4}(\w+\??): (.+);$/gm)].map(([, field, type]) => `${field} ${kind(type)}`);
    assert.equal(own.length, body.split("\n").filter((line) => line.endsWith(";")).length, `${name}: each field is read`);
    shapes[name] = [...(base ? shapes[base] : []), ...own].sort();
  }
  return shapes;
}

test("results have the fields of the list", () => {
  const files = { Receipt: "native.d.ts", Served: "session.d.ts" };
  for (const [name, file] of Object.entries(files)) {
    const source = readFileSync(new URL(file, import.meta.resolve("acpdb")), "utf8");
    const [, body] = new RegExp(`export interface ${name} \\{\n(.*?)^\\}`, "ms").exec(source);
    const fields = [...body.matchAll(/^ {4}readonly (\w+): /gm)].map(([, field]) => snake(field));
    assert.deepEqual(fields.sort(), tables[`results.${name}`].fields, name);
  }
  assert.equal(Object.keys(tables).filter((name) => name.startsWith("results.")).length, Object.keys(files).length);
});

test("shapes of answers have the fields of the list", () => {
  const file = new URL("shapes.d.ts", import.meta.resolve("acpdb"));
  const listed = Object.entries(tables).filter(([name]) => name.startsWith("shapes."));
  assert.ok(listed.length > 20, "the list has shapes");
  const here = declared(readFileSync(file, "utf8"));
  assert.deepEqual(here, Object.fromEntries(listed.map(([name, row]) => [name.slice(7), [...row.fields].sort()])));
});
