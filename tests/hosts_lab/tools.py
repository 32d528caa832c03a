"""What each host calls the things that a play does."""
import os


def patch(*lines):
    return "*** Begin Patch\n" + "".join(line + "\n" for line in lines) + "*** End Patch\n"


def claude(call, path):
    do = call["do"]
    return {
        "read": lambda: ("Read", {"file_path": path}),
        "edit": lambda: ("Edit", {"file_path": path, "old_string": call["old"], "new_string": call["new"]}),
        "write": lambda: ("Write", {"file_path": path, "content": call["text"]}),
        "run": lambda: ("Bash", {"command": call["command"], "description": "Run it"}),
        "search": lambda: ("Bash", {"command": "grep -rn %s src" % call["pattern"], "description": "Search"}),
        "todo": lambda: ("TodoWrite", {"todos": [{"content": text, "status": status, "activeForm": "Doing: " + text}
                                                 for text, status in call["list"]]}),
        "agent": lambda: ("Agent", {"description": "Look", "prompt": call["prompt"], "subagent_type": "general-purpose"}),
        "image": lambda: ("Read", {"file_path": path}),
        "mcp": lambda: ("mcp__labsrv__recall", {"what": call["what"]}),
        "recall": lambda: ("mcp__acpdb__recall", {"query": call["query"]}),
    }[do]()


def opencode(call, path):
    return {
        "read": lambda: ("read", {"filePath": path}),
        "edit": lambda: ("edit", {"filePath": path, "oldString": call["old"], "newString": call["new"]}),
        "write": lambda: ("write", {"filePath": path, "content": call["text"]}),
        "run": lambda: ("bash", {"command": call["command"], "description": "Run it"}),
        "search": lambda: ("bash", {"command": "grep -rn %s src" % call["pattern"], "description": "Search"}),
        "todo": lambda: ("todowrite", {"todos": [{"content": text, "status": status, "priority": "medium"}
                                                 for text, status in call["list"]]}),
        "agent": lambda: ("task", {"description": "Look", "prompt": call["prompt"], "subagent_type": "general"}),
        "image": lambda: ("read", {"filePath": path}),
        "mcp": lambda: ("labsrv_recall", {"what": call["what"]}),
        "context": lambda: ("context", {"action": call["action"], "targets": [[call["hash"], *call.get("summary", [])]]}),
        "recall": lambda: ("acpdb_recall", {"query": call["query"]}),
        "remember": lambda: ("acpdb_memory_remember", {"kind": "decision", "text": call["text"], "key": "", "rationale": ""}),
    }[call["do"]]()


def codex(call, path):
    near = call.get("path")
    return {
        "read": lambda: ("exec_command", {"cmd": "cat " + near}),
        "edit": lambda: ("apply_patch", patch("*** Update File: " + near, "@@", "-" + call["old"], "+" + call["new"])),
        "write": lambda: ("apply_patch", patch("*** Add File: " + near, *("+" + line for line in call["text"].splitlines()))),
        "run": lambda: ("exec_command", {"cmd": call["command"]}),
        "search": lambda: ("exec_command", {"cmd": "grep -rn %s src" % call["pattern"]}),
        "todo": lambda: ("update_plan", {"plan": [{"step": text, "status": status} for text, status in call["list"]]}),
        "agent": lambda: ("spawn_agent", {"message": call["prompt"]}, "multi_agent_v1"),
        "image": lambda: ("view_image", {"path": path}),
        "find": lambda: ("tool_search", {"query": call["query"]}),
        "mcp": lambda: ("recall", {"what": call["what"]}, "mcp__labsrv"),
        "recall": lambda: ("recall", {"query": call["query"]}, "mcp__acpdb"),
    }[call["do"]]()


def gemini(call, path):
    return {
        "read": lambda: ("read_file", {"file_path": path}),
        "edit": lambda: ("replace", {"file_path": path, "old_string": call["old"], "new_string": call["new"],
                                     "instruction": "Replace the line."}),
        "write": lambda: ("write_file", {"file_path": path, "content": call["text"]}),
        "run": lambda: ("run_shell_command", {"command": call["command"], "description": "Run it"}),
        "search": lambda: ("grep_search", {"pattern": call["pattern"], "dir_path": "src"}),
        "todo": lambda: ("write_todos", {"todos": [{"description": text, "status": status} for text, status in call["list"]]}),
        "image": lambda: ("read_file", {"file_path": path}),
        "mcp": lambda: ("mcp_labsrv_recall", {"what": call["what"]}),
    }[call["do"]]()


def copilot(call, path):
    return {
        "read": lambda: ("view", {"path": path}),
        "edit": lambda: ("edit", {"path": path, "old_str": call["old"], "new_str": call["new"]}),
        "write": lambda: ("create", {"path": path, "file_text": call["text"]}),
        "run": lambda: ("bash", {"command": call["command"], "description": "Run it"}),
        "search": lambda: ("bash", {"command": "grep -rn %s src" % call["pattern"], "description": "Search"}),
        "image": lambda: ("view", {"path": path}),
        "agent": lambda: ("task", {"name": "look", "description": "Look", "prompt": call["prompt"], "agent_type": "general-purpose",
                                   "mode": "sync"}),
    }[call["do"]]()


def pi(call, path):
    return {
        "read": lambda: ("read", {"path": path}),
        "edit": lambda: ("edit", {"path": path, "edits": [{"oldText": call["old"], "newText": call["new"]}]}),
        "write": lambda: ("write", {"path": path, "content": call["text"]}),
        "run": lambda: ("bash", {"command": call["command"]}),
        "search": lambda: ("bash", {"command": "grep -rn %s src" % call["pattern"]}),
        "image": lambda: ("read", {"path": path}),
        "context": lambda: ("context", {"action": call["action"], "targets": [[call["hash"], *call.get("summary", [])]]}),
        "recall": lambda: ("acpdb_recall", {"query": call["query"]}),
        "remember": lambda: ("acpdb_memory_remember", {"kind": "decision", "text": call["text"]}),
    }[call["do"]]()


HOSTS = {"claude": claude, "opencode": opencode, "codex": codex, "gemini": gemini, "copilot": copilot, "pi": pi}


def call_of(host, call, project):
    """(tool, arguments, namespace), or None if the host has nothing for it."""
    path = os.path.join(project, call["path"]) if "path" in call else None
    try:
        made = HOSTS[host](call, path)
    except KeyError:
        return None
    return made if len(made) == 3 else made + (None,)
