// Compiled and not run: what the adapters give fits where each framework takes it.

import type { Session, Store } from "acpdb";
import { middleware, recorded } from "acpdb/adapters/ai";
import { Agent } from "@mastra/core/agent";
import { acpdbMiddleware } from "acpdb/adapters/langchain";
import { acpdbProcessor } from "acpdb/adapters/mastra";
import { generateText, wrapLanguageModel } from "ai";
import { createAgent, modelRetryMiddleware } from "langchain";

type Model = Parameters<typeof wrapLanguageModel>[0]["model"];

export async function fits(session: Session, base: Model): Promise<string> {
  const model = wrapLanguageModel({ model: base, middleware: middleware(session) });
  return (await generateText({ model, prompt: "why is the build red?", ...recorded(session) })).text;
}

export const agent = (store: Store) =>
  createAgent({ model: "anthropic:any", middleware: [modelRetryMiddleware(), acpdbMiddleware(store, { pruned: false, sessionOf: () => "s" })] });

export const worker = (store: Store) =>
  new Agent({ id: "a", name: "a", instructions: "", model: "anthropic/any", inputProcessors: [acpdbProcessor(store, { project: "shop" })] });
