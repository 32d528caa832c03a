// The suite for checkpointers by the makers of LangGraph, whole; run by vitest, which it is written for.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { validate } from "@langchain/langgraph-checkpoint-validation";
import { open } from "acpdb";
import { AcpdbSaver } from "acpdb/adapters/langgraph";

const opened = new Map();

validate({
  checkpointerName: "acpdb",
  async createCheckpointer() {
    const folder = mkdtempSync(join(tmpdir(), "acpdb-node-"));
    const store = await open(folder, { anyFileSystem: true, durability: "os" });
    const saver = new AcpdbSaver(store);
    opened.set(saver, { store, folder });
    return saver;
  },
  async destroyCheckpointer(saver) {
    const { store, folder } = opened.get(saver);
    if ((await store.verify()).verdict !== "sound") throw new Error("the store is not sound");
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  },
});
