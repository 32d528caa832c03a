"""How each host is set up, and the scenes that it plays."""
import glob
import json
import os

MEANWHILE = "And this was typed meanwhile."


# ---- Claude Code

def claude(scene, *words, prompt=None, lines=None, until=None, flags=("--disable-slash-commands",)):
    scene.environment.update(
        ANTHROPIC_BASE_URL=scene.url, ANTHROPIC_API_KEY="sk-ant-lab", IS_SANDBOX="1", DISABLE_AUTOUPDATER="1",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", DISABLE_TELEMETRY="1")
    form = ["--output-format", "stream-json", "--input-format", "stream-json", "--verbose"] if lines else ["--output-format", "json"]
    command = ["claude", "-p", "--dangerously-skip-permissions", *flags, *form, *words]
    return scene.run(*command, *([prompt] if prompt else []), lines=lines, until=until)


def claude_main(scene):
    claude(scene, prompt="Rename the greeting. <play:main>")
    claude(scene, "--continue", prompt="Look at it again. <play:second>")


def played_on_model(scene, model):
    """Other models get reminders where the default one gets messages of role system."""
    claude(scene, "--model", model, prompt="Rename the greeting. <play:main>")
    claude(scene, "--model", model, "--continue", prompt="Look at it again. <play:second>")


def claude_opus(scene):
    played_on_model(scene, "claude-opus-4-5")


def claude_sonnet(scene):
    played_on_model(scene, "claude-sonnet-5")


def claude_haiku(scene):
    played_on_model(scene, "claude-haiku-4-5")


def claude_mention(scene):
    claude(scene, prompt="Look at @src/b.py first. <play:second>")
    claude(scene, "--continue", prompt="Now @src/a.py and @src/b.py once more. <play:helper>")


def claude_slash(scene):
    claude(scene, prompt="Look at it. <play:second>", flags=())
    claude(scene, "--continue", prompt="/context", flags=())
    claude(scene, "--continue", prompt="/cost", flags=())
    claude(scene, "--continue", prompt="Go on. <play:helper>", flags=())


def claude_agents(scene):
    claude(scene, prompt="Ask for help. <play:agents>")
    claude(scene, "--continue", prompt="Look at it again. <play:second>")


def claude_twice(scene):
    claude(scene, prompt="Look at it. <play:second>", flags=())
    claude(scene, "--continue", prompt="/compact", flags=())
    claude(scene, "--continue", prompt="Go on. <play:helper>", flags=())
    claude(scene, "--continue", prompt="/compact once more", flags=())
    claude(scene, "--continue", prompt="And further. <play:second>", flags=())


def claude_killed(scene):
    claude(scene, prompt="Wait. <play:stuck>", until="stuck")
    claude(scene, "--continue", prompt="Look at it again. <play:second>")


def claude_thread(scene):
    """Each request tells only what is new: the provider keeps the rest."""
    scene.environment["CLAUDE_CODE_TETHER_LIVE"] = "1"
    claude_main(scene)


def claude_more(scene):
    claude(scene, prompt="Look at more. <play:more>")
    claude(scene, "--continue", prompt="Look at it again. <play:second>")


def claude_agent(scene):
    claude(scene, prompt="Ask for help. <play:agent>")


def claude_meanwhile(scene):
    def line(text):
        return json.dumps({"type": "user", "message": {"role": "user", "content": text}})
    claude(scene, lines=[(0, line("Wait a little. <play:slow>")), (2.5, line(MEANWHILE))])


def claude_hooks(scene):
    def hook(event, **answer):
        said = json.dumps({"hookSpecificOutput": dict({"hookEventName": event}, **answer)})
        return [{"hooks": [{"type": "command", "command": "cat > /dev/null; printf '%s' " + "'" + said + "'"}]}]
    events = ["SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "PostToolBatch"]
    settings = {"hooks": {event: hook(event, additionalContext=event + " says so.") for event in events}}
    scene.put("home/.claude/settings.json", json.dumps(settings))
    claude(scene, prompt="Try the hooks. <play:hooks>")
    claude(scene, "--continue", prompt="Look at it again. <play:second>")


def claude_compact(scene):
    claude(scene, prompt="Look at it. <play:second>", flags=())
    claude(scene, "--continue", prompt="/compact keep file names", flags=())
    claude(scene, "--continue", prompt="Go on. <play:helper>", flags=())


def claude_fold(scene):
    plugin = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fold")
    flags = ("--plugin-dir", plugin)
    claude(scene, prompt="Rename the greeting. <play:main>", flags=flags)
    claude(scene, "--continue", prompt="/compact", flags=flags)
    claude(scene, "--continue", prompt="Look at it again. <play:second>", flags=flags)


def claude_rewind(scene):
    claude(scene, prompt="Look at it. <play:second>")
    claude(scene, "--continue", prompt="Now the helper. <play:helper>")
    transcript = glob.glob(scene.home + "/.claude/projects/*/*.jsonl")[0]
    with open(transcript, encoding="utf-8") as file:
        spoken = [json.loads(line) for line in file]
    ends = [row for row in spoken if row["type"] == "assistant" and row["message"]["stop_reason"] == "end_turn"]
    claude(scene, "--resume", ends[0]["sessionId"], "--resume-session-at", ends[0]["uuid"], prompt="Another way. <play:helper>")


# ---- Codex

def codex(scene, *words, prompt, head="", tables="", exec_words=(), until=None):
    scene.environment.update(CODEX_HOME=scene.home + "/.codex")
    scene.put("home/.codex/own.md", "You are a program in a laboratory.")
    scene.put("home/.codex/config.toml", """model = "gpt-5.5"
model_provider = "lab"
model_instructions_file = "%s/.codex/own.md"
check_for_update_on_startup = false
%s
[model_providers.lab]
name = "lab"
base_url = "%s/v1"
env_key = "LAB_KEY"
wire_api = "responses"
[tools.update_plan]
enabled = true
[analytics]
enabled = false
[projects."%s"]
trust_level = "trusted"
%s
""" % (scene.home, head, scene.url, scene.project, tables))
    flags = ["--dangerously-bypass-approvals-and-sandbox", "--json", *exec_words]
    return scene.run("codex", "exec", *flags, *words, prompt, until=until)


def codex_main(scene):
    codex(scene, prompt="Rename the greeting. <play:main>")
    codex(scene, "resume", "--last", prompt="Look at it again. <play:second>")


def codex_more(scene):
    codex(scene, prompt="Look at more. <play:more>")
    codex(scene, "resume", "--last", prompt="Look at it again. <play:second>")


def codex_agent(scene):
    codex(scene, prompt="Ask for help. <play:team>")


def codex_hooks(scene):
    def hook(event, **answer):
        said = json.dumps({"hookSpecificOutput": dict({"hookEventName": event}, **answer)})
        return [{"hooks": [{"type": "command", "command": "cat > /dev/null; printf '%s' " + "'" + said + "'"}]}]
    events = ["SessionStart", "UserPromptSubmit", "PostToolUse"]
    scene.put("home/.codex/hooks.json", json.dumps({"hooks": {event: hook(event, additionalContext=event + " says so.") for event in events}}))
    trust = ["--dangerously-bypass-hook-trust"]
    codex(scene, prompt="Try the hooks. <play:hooks>", exec_words=trust)
    codex(scene, "resume", "--last", prompt="Look at it again. <play:second>", exec_words=trust)


def codex_killed(scene):
    codex(scene, prompt="Wait. <play:stuck>", until="stuck")
    codex(scene, "resume", "--last", prompt="Look at it again. <play:second>")


def codex_find(scene):
    server = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mcp_server.py")
    table = '[mcp_servers.labsrv]\ncommand = "python3"\nargs = ["%s"]\n' % server
    codex(scene, prompt="Find the tool. <play:find>", tables=table)


def codex_compact(scene):
    limit = "model_auto_compact_token_limit = 5600"
    codex(scene, prompt="Rename the greeting. <play:main>", head=limit)
    codex(scene, "resume", "--last", prompt="Look at it again. <play:second>", head=limit)


# ---- opencode

def opencode(scene, *words, prompt, package="@ai-sdk/anthropic", window=200000, model="claude-lab", until=None, own=False):
    """`own`: no setting names the provider's address, so the variable of the package does."""
    options = {} if own else {"baseURL": scene.url + "/v1", "apiKey": "lab"}
    config = {
        "$schema": "https://opencode.ai/config.json", "autoupdate": False, "share": "disabled", "permission": {"*": "allow"},
        "model": "lab/" + model, "small_model": "lab/" + model, "enabled_providers": ["lab"],
        "provider": {"lab": {"npm": package, "name": "Lab", "options": options, "models": {
            model: {"name": "Lab", "reasoning": True, "tool_call": True, "attachment": True,
                           "modalities": {"input": ["text", "image"], "output": ["text"]},
                           "limit": {"context": window, "output": 8000}}}}},
    }
    scene.put("home/.config/opencode/opencode.json", json.dumps(config))
    scene.environment.update(
        npm_config_registry="http://127.0.0.1:9/", npm_config_fetch_retries="0", OPENCODE_DISABLE_AUTOUPDATE="1",
        OPENCODE_DISABLE_MODELS_FETCH="1", OPENCODE_DISABLE_LSP_DOWNLOAD="1", OPENCODE_DISABLE_SHARE="1")
    return scene.run("opencode", "run", "--format", "json", "--print-logs", *words, prompt, until=until)


def opencode_main(scene):
    opencode(scene, prompt="Rename the greeting. <play:main>")
    opencode(scene, "--continue", prompt="Look at it again. <play:second>")


def opencode_more(scene):
    opencode(scene, prompt="Look at more. <play:more>")


def opencode_agent(scene):
    opencode(scene, prompt="Ask for help. <play:agent>")


def opencode_chat(scene):
    opencode(scene, prompt="Rename the greeting. <play:main>", package="@ai-sdk/openai-compatible", model="lab")


def opencode_responses(scene):
    opencode(scene, prompt="Rename the greeting. <play:main>", package="@ai-sdk/openai", model="gpt-lab")


def opencode_compact(scene):
    opencode(scene, prompt="Rename the greeting. <play:main>", window=17000)
    opencode(scene, "--continue", prompt="Look at it again. <play:second>", window=200000)


def opencode_fork(scene):
    opencode(scene, prompt="Rename the greeting. <play:main>")
    opencode(scene, "--continue", "--fork", prompt="Look at it again. <play:second>")


def opencode_undo(scene):
    opencode(scene, prompt="Look at it. <play:second>")
    opencode(scene, "--continue", prompt="Now the helper. <play:helper>")
    with scene.serving("opencode", "serve", "--port", "0") as url:
        session = scene.ask(url + "/session")[0]["id"]
        prompts = [it["info"]["id"] for it in scene.ask(url + "/session/%s/message" % session) if it["info"]["role"] == "user"]
        scene.ask(url + "/session/%s/revert" % session, {"messageID": prompts[-1]})
    opencode(scene, "--continue", prompt="Another way. <play:helper>")


def opencode_killed(scene):
    opencode(scene, prompt="Wait. <play:stuck>", until="stuck")
    opencode(scene, "--continue", prompt="Look at it again. <play:second>")


# ---- Gemini CLI

def gemini(scene, *words, prompt, more=None):
    scene.environment.update(GOOGLE_GEMINI_BASE_URL=scene.url, GEMINI_API_KEY="lab", GEMINI_CLI_TRUST_WORKSPACE="true")
    settings = {"privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False},
                "general": {"enableAutoUpdate": False, "disableAutoUpdate": True, "disableUpdateNag": True},
                "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}}
    scene.put("home/.gemini/settings.json", json.dumps(dict(settings, **(more or {}))))
    return scene.run("gemini", "--yolo", "--output-format", "json", "-m", "gemini-2.5-pro", *words, "-p", prompt)


def gemini_main(scene):
    gemini(scene, prompt="Rename the greeting. <play:main>")


def gemini_resume(scene):
    gemini(scene, prompt="Look at it. <play:second>")
    gemini(scene, "--resume", "latest", prompt="Look at it again. <play:helper>")


def gemini_again(scene):
    """Reasoning and two calls at once, then a resume, which lists all messages in another form."""
    gemini(scene, prompt="Rename the greeting. <play:main>")
    gemini(scene, "--resume", "latest", prompt="Look at it again. <play:second>")
    gemini(scene, "--resume", "latest", prompt="And the other. <play:helper>")


def gemini_more(scene):
    gemini(scene, prompt="Look at more. <play:more>")


# ---- Copilot CLI

def copilot(scene, *words, prompt):
    scene.environment.update(
        COPILOT_PROVIDER_BASE_URL=scene.url + "/v1", COPILOT_PROVIDER_TYPE="openai", COPILOT_PROVIDER_API_KEY="lab",
        COPILOT_MODEL="lab", COPILOT_OFFLINE="true", COPILOT_AUTO_UPDATE="false")
    return scene.run("copilot", "--allow-all", "--no-color", *words, "-p", prompt)


def copilot_main(scene):
    copilot(scene, prompt="Rename the greeting. <play:main>")
    copilot(scene, "--continue", prompt="Look at it again. <play:second>")


def copilot_agent(scene):
    copilot(scene, prompt="Ask for help. <play:agent>")
    copilot(scene, "--continue", prompt="Look at it again. <play:second>")


def copilot_compact(scene):
    copilot(scene, prompt="Rename the greeting. <play:main>")
    copilot(scene, "--continue", prompt="Look at it again. <play:second>")
    copilot(scene, "--continue", prompt="/compact")
    copilot(scene, "--continue", prompt="Now the helper. <play:helper>")
    copilot(scene, "--continue", prompt="/compact")
    copilot(scene, "--continue", prompt="And further. <play:second>")


# ---- Pi

def pi(scene, *words, prompt=None, lines=None, settings=None, thread=False):
    models = {"providers": {"lab": {"baseUrl": scene.url, "api": "anthropic-messages", "apiKey": "lab", "models": [
        {"id": "claude-lab", "compat": {"supportsMessageThreads": thread}, "name": "Lab", "reasoning": False, "input": ["text", "image"], "contextWindow": 200000, "maxTokens": 8000,
         "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}]}}}
    scene.put("home/.pi/agent/models.json", json.dumps(models))
    scene.put("home/.pi/agent/settings.json", json.dumps(settings or {}))
    scene.environment.update(PI_OFFLINE="1", PI_SKIP_VERSION_CHECK="1")
    form = ["--mode", "rpc"] if lines else ["-p", prompt]
    return scene.run("pi", "--provider", "lab", "--model", "claude-lab", *words, *form, lines=lines)


def pi_main(scene):
    pi(scene, prompt="Rename the greeting. <play:main>")
    pi(scene, "--continue", prompt="Look at it again. <play:second>")


def pi_more(scene):
    pi(scene, prompt="Look at more. <play:more>")
    pi(scene, "--continue", prompt="Look at it again. <play:second>")


def pi_compact(scene):
    settings = {"compaction": {"enabled": True, "reserveTokens": 1000, "keepRecentTokens": 60}}
    pi(scene, prompt="Rename the greeting. <play:main>", settings=settings)
    pi(scene, "--continue", lines=[(2, json.dumps({"type": "compact"})), (4, json.dumps({"type": "prompt", "message": "Go on. <play:second>"}))],
       settings=settings)
    pi(scene, "--continue", prompt="And the other. <play:helper>", settings=settings)


def pi_branch(scene):
    extension = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pi_back.js")
    pi(scene, prompt="Look at it. <play:second>")
    pi(scene, "--continue", prompt="Now the helper. <play:helper>")
    # Without a screen only an extension's command goes back in a session.
    pi(scene, "--continue", "--extension", extension, lines=[
        (2, json.dumps({"type": "prompt", "message": "/back"})),
        (2, json.dumps({"type": "bash", "command": "echo by hand"})),
        (2, json.dumps({"type": "prompt", "message": "Another way. <play:helper>"}))])
    pi(scene, "--continue", prompt="Look at it again. <play:second>")


SCENES = {}
for _name, _play in sorted(globals().items()):
    _host, _, _scene = _name.partition("_")
    if callable(_play) and _scene and _host in ("claude", "codex", "opencode", "gemini", "copilot", "pi"):
        SCENES.setdefault(_host, {})[_scene] = _play
