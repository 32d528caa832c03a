// Compiled and not run: what the adapters give fits where each framework takes it.

import type { Session } from "acpdb";
import { middleware, recorded } from "acpdb/adapters/ai";
import { generateText, wrapLanguageModel } from "ai";

type Model = Parameters<typeof wrapLanguageModel>[0]["model"];

export async function fits(session: Session, base: Model): Promise<string> {
  const model = wrapLanguageModel({ model: base, middleware: middleware(session) });
  return (await generateText({ model, prompt: "why is the build red?", ...recorded(session) })).text;
}
