// Encrypted stores: made and opened by a key file or a passphrase, and what is said without them.

import assert from "node:assert/strict";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import * as acpdb from "acpdb";
import { anywhere, folder } from "./help.mjs";

const said = "a prompt for two";
const passphrase = "correct horse";

async function written(path, key = {}) {
  const store = await acpdb.open(path, { ...anywhere, ...key });
  await store.session("s1").append(acpdb.Entry.message("user", said));
  assert.equal((await store.info()).encrypted, Object.keys(key).length > 0);
  await store.close();
}

async function read(path, key = {}) {
  const store = await acpdb.open(path, { ...anywhere, ...key, readOnly: true });
  try {
    return JSON.stringify(await store.session("s1").context());
  } finally {
    await store.close();
  }
}

const keys = {
  "a key file": (path) => ({ keyFile: join(path, "my.key") }),
  "a URL of a key file": (path) => ({ keyFile: pathToFileURL(join(path, "my key")) }),
  "a passphrase": () => ({ passphrase }),
};

for (const [name, of] of Object.entries(keys)) {
  test(`an encrypted store is read with ${name}, and nothing stands in its files`, async () => {
    const here = folder();
    const [path, key] = [join(here, "store"), of(here)];
    await written(path, key);
    for (const file of readdirSync(path, { recursive: true, withFileTypes: true })) {
      if (file.isFile()) assert.ok(!readFileSync(join(file.parentPath ?? file.path, file.name)).includes(said), file.name);
    }
    assert.match(await read(path, key), /a prompt for two/);
    const store = await acpdb.open(path, { ...anywhere, ...key });
    await store.session("s1").append(acpdb.Entry.message("user", "more"));
    assert.equal((await store.search("prompt")).items[0].session, "s1");
    assert.equal((await store.verify({ deep: true })).verdict, "sound");
    await store.close();
    // Whether it was changed can be seen by all.
    assert.equal((await acpdb.verify(path, { deep: true })).verdict, "sound");
  });
}

test("a key file is made with its store for its owner alone, and never for another", async () => {
  const here = folder();
  const [path, keyFile] = [join(here, "store"), join(here, "my.key")];
  await assert.rejects(acpdb.open(path, { ...anywhere, keyFile, create: false }), { code: "locked", message: /there is no key .*my\.key/ });
  await written(path, { keyFile });
  if (process.platform !== "win32") assert.equal(statSync(keyFile).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(here).sort(), ["my.key", "store"]);
  const before = readFileSync(keyFile);
  await written(join(here, "second"), { keyFile });
  assert.deepEqual(readFileSync(keyFile), before);
  // For a store that is there, no other key is made in the place of one that is lost.
  renameSync(keyFile, join(here, "away"));
  await assert.rejects(acpdb.open(path, { ...anywhere, keyFile }), { code: "locked", message: /put it back/ });
  assert.equal(existsSync(keyFile), false);
  assert.match(await read(path, { keyFile: join(here, "away") }), /a prompt for two/);
});

test("all that make one store at once have one key", async () => {
  const here = folder();
  const options = { ...anywhere, keyFile: join(here, "my.key"), lockWait: 60 };
  const one = async (number) => {
    const store = await acpdb.open(join(here, "store"), options);
    await store.session("s1").append(acpdb.Entry.message("user", `of ${number}`));
    await store.close();
  };
  await Promise.all(Array.from({ length: 8 }, (_, number) => one(number)));
  const store = await acpdb.open(join(here, "store"), options);
  assert.equal((await store.session("s1").context()).items.length, 8);
  await store.close();
  assert.deepEqual(readdirSync(here).sort(), ["my.key", "store"]);
});

const locked = {
  "another passphrase": [() => ({ passphrase: "correct house" }), /is wrapped by key/],
  "a key file that is not there": [(here) => ({ keyFile: join(here, "none.key") }), /there is no key .*none\.key/],
  "a key file of another store": [(here) => ({ keyFile: join(here, "other.key") }), /other\.key/],
  "a file that is no key": [(here) => ({ keyFile: join(here, "notes.txt") }), /this is no key: acpdb-key-1/],
  "a folder as key file": [(here) => ({ keyFile: here }), /cannot be used/],
  "a key file that others may read": [(here) => ({ keyFile: join(here, "loose.key") }), /chmod 600/],
};

for (const [name, [of, says]] of Object.entries(locked)) {
  test(`${name} opens nothing, and is told by name`, async () => {
    const here = folder();
    const path = join(here, "store");
    await written(path, { keyFile: join(here, "my.key") });
    await written(join(here, "third"), { keyFile: join(here, "other.key") });
    writeFileSync(join(here, "notes.txt"), "no key\n", { mode: 0o600 });
    copyFileSync(join(here, "my.key"), join(here, "loose.key"));
    chmodSync(join(here, "loose.key"), 0o644);
    const opened = acpdb.open(path, { ...anywhere, ...of(here) });
    const refused = await opened.then(() => assert.fail("it was opened"), (error) => error);
    assert.ok(refused instanceof acpdb.LockedError, `${refused.name}: ${refused.message}`);
    assert.match(refused.message, says);
    assert.ok(!refused.message.includes("correct house"));
  });
}

test("without a key an encrypted store says that it needs one", async () => {
  const here = folder();
  const path = join(here, "store");
  await written(path, { passphrase });
  const needs = { code: "locked", message: /was not given; open the store with its key file or its passphrase/ };
  const store = await acpdb.open(path, { ...anywhere, readOnly: true });
  assert.equal((await store.verify()).verdict, "sound");
  for (const use of [() => store.session("s1").context(), () => store.session("s1").history(), () => store.export()]) {
    await assert.rejects(use(), needs);
  }
  await store.close();
});

const refused = {
  "a short passphrase": [{ passphrase: "short" }, acpdb.InvalidError, /8 bytes at least/],
  "an empty passphrase": [{ passphrase: "" }, acpdb.InvalidError, /8 bytes at least/],
  "a number as passphrase": [{ passphrase: 12345678 }, TypeError, /passphrase is a string, not number/],
  "bytes as passphrase": [{ passphrase: Buffer.from(passphrase) }, TypeError, /passphrase is a string, not Buffer/],
  "half a pair in a passphrase": [{ passphrase: "half a pair: \ud800" }, acpdb.InvalidError, /passphrase holds half of a surrogate/],
  "both": [{ passphrase, keyFile: "my.key" }, acpdb.InvalidError, /give one of them/],
  "a number as key file": [{ keyFile: 7 }, TypeError, /keyFile is a string or a file URL, not number/],
  "a NUL in a key file": [{ keyFile: "a\0b" }, acpdb.InvalidError, /keyFile holds a NUL/],
};

for (const [name, [key, kind, says]] of Object.entries(refused)) {
  // A passphrase that was a number was told in the text of the error, which goes into logs.
  test(`${name} makes no store`, async () => {
    const here = folder();
    const told = await acpdb.open(join(here, "store"), { ...anywhere, ...key }).then(() => assert.fail("it was taken"), (error) => error);
    assert.ok(told instanceof kind, `${told.name}: ${told.message}`);
    assert.match(told.message, says);
    assert.ok(!told.message.includes("12345678"));
    assert.deepEqual(readdirSync(here), []);
  });
}

test("a plain store is not taken for an encrypted one", async () => {
  const here = folder();
  mkdirSync(join(here, "keys"));
  await written(join(here, "store"));
  for (const of of Object.values(keys)) {
    await assert.rejects(acpdb.open(join(here, "store"), { ...anywhere, ...of(join(here, "keys")) }), acpdb.LockedError);
  }
  assert.deepEqual(readdirSync(join(here, "keys")), []);
});

test("sessions have the subject that the store was opened with", async () => {
  const path = join(folder(), "store");
  const said = acpdb.Entry.message("user", "a prompt");
  let store = await acpdb.open(path, { ...anywhere, passphrase, subject: "Ada L" });
  for (const session of [store.session("s1"), store.session("s2", { subject: "Bob" }), store.session("child", { parent: "s2" })]) {
    await session.append(said);
  }
  await store.close();
  for (const file of readdirSync(path, { recursive: true, withFileTypes: true })) {
    if (file.isFile()) assert.ok(!readFileSync(join(file.parentPath ?? file.path, file.name)).includes("Ada L"), file.name);
  }
  store = await acpdb.open(path, { ...anywhere, passphrase });
  await store.session("s3").append(said);
  for (const [name, subject, refused] of [
    ["s1", "Ada L"],
    ["s1", "Bob", /about another subject/],
    ["s2", "Bob"],
    ["s2", "Ada L", /about another subject/],
    ["child", "Bob"],
    ["s3", "Ada L", /begun without a subject/],
  ]) {
    const append = store.session(name, { subject }).append(said);
    if (refused === undefined) await append;
    else await assert.rejects(append, { code: "invalid", message: refused });
  }
  await store.close();
});

const notAbout = {
  "a subject of a plain store": [{ subject: "Ada" }, acpdb.InvalidError, /a subject needs an encrypted one; give a key file or a passphrase/],
  "an empty subject": [{ subject: "", keyFile: "my.key" }, acpdb.InvalidError, /is no name of a subject/],
  "a subject between blanks": [{ subject: " Ada", keyFile: "my.key" }, acpdb.InvalidError, /blanks around it/],
  "a long subject": [{ subject: "A".repeat(257), keyFile: "my.key" }, acpdb.TooLargeError, /257/],
  "a number as subject": [{ subject: 7, keyFile: "my.key" }, TypeError, /subject is a string, not number/],
  "half a pair in a subject": [{ subject: "half \ud800", keyFile: "my.key" }, acpdb.InvalidError, /subject holds half of a surrogate/],
};

for (const [name, [given, kind, says]] of Object.entries(notAbout)) {
  test(`${name} makes neither store nor key`, async () => {
    const here = folder();
    const key = given.keyFile && { keyFile: join(here, given.keyFile) };
    const told = await acpdb.open(join(here, "store"), { ...anywhere, ...given, ...key }).then(() => assert.fail("it was taken"), (error) => error);
    assert.ok(told instanceof kind, `${told.name}: ${told.message}`);
    assert.match(told.message, says);
    assert.deepEqual(readdirSync(here), []);
  });
}

test("a plain store is about nobody", async () => {
  const path = join(folder(), "store");
  await written(path);
  await assert.rejects(acpdb.open(path, { ...anywhere, subject: "Ada" }), { code: "invalid", message: /is not encrypted/ });
  const store = await acpdb.open(path, anywhere);
  assert.throws(() => store.session("s2", { subject: "" }), { code: "invalid", message: /is no name of a subject/ });
  const head = await store.head();
  await assert.rejects(store.session("s2", { subject: "Ada" }).append(acpdb.Entry.message("user", "x")), { code: "invalid", message: /is not encrypted/ });
  assert.equal(await store.head(), head);
  await store.close();
});
