/** How the plug-in finds acpdb, and what acpdb may do. */
export interface Options {
  /** The program; `acpdb` by default. */
  program?: string
  /** The store's folder; by default the one that a command in the project's folder would use. */
  db?: string
  /** `record`: nothing is changed. `suggest`: what is due is added. `prune`: what is stale is shown shorter. */
  mode?: "record" | "suggest" | "prune"
}

/** The hooks that opencode is given; it knows them by their names. */
export type Hooks = Record<string, unknown>

/** The plug-in as opencode calls it: with its own client and the project's folder. */
export type Server = (host: { client: any; directory: string }, options?: Options) => Promise<Hooks>

declare const plugin: Server & { id: string; server: Server }
export default plugin
