// Prints the contexts of all sessions as JSON: by session and format, in base64.

import { createRequire } from "node:module";

const { open } = createRequire(process.argv[3])("acpdb");

const store = await open(process.argv[2], { anyFileSystem: true, readOnly: true });
const told = {};
for (const { id, scope } of await store.names()) {
  if (scope !== "session") continue;
  for (const format of process.argv.slice(4)) {
    told[`${id} ${format}`] = (await store.session(id).context({ format })).toString("base64");
  }
}
await store.close();
console.log(JSON.stringify(told));
