//! Parameters of calls, and records as hosts write them.

use crate::output::{listing, run};
use crate::text::{code, prose, sentence};
use crate::words::{
    BRANCHES, Dice, EXTENSIONS, FOLDERS, MODELS, NOUNS, ROOTS, TOOLS, VERBS, camel, capital, file, whole_path,
};

pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

pub(crate) fn parameters(dice: &mut Dice) -> String {
    let path = whole_path(dice);
    match dice.roll(16) {
        0 => format!("{{\"file_path\":\"{path}\"}}"),
        1 => format!(
            "{{\"file_path\":\"{path}\",\"offset\":{},\"limit\":{}}}",
            dice.roll(900),
            10 * (1 + dice.roll(30))
        ),
        2 => {
            let (old, new) = (code(dice, 3), code(dice, 4));
            format!(
                "{{\"replace_all\":false,\"file_path\":\"{path}\",\"old_string\":{},\"new_string\":{}}}",
                quoted(&old),
                quoted(&new)
            )
        }
        3 => {
            let (old, new) = (code(dice, 2), code(dice, 3));
            format!(
                "{{\"filePath\":\"{path}\",\"oldString\":{},\"newString\":{}}}",
                quoted(&old),
                quoted(&new)
            )
        }
        4 => format!(
            "{{\"command\":\"cd {} && npm test 2>&1 | tail -20\",\"description\":\"Run the {} tests\",\"timeout\":120000}}",
            dice.pick(ROOTS),
            dice.pick(NOUNS)
        ),
        5 => "{\"command\":\"git diff HEAD~1 --stat && git log --oneline -5\",\"description\":\"Show recent changes\"}".to_string(),
        6 => format!(
            "{{\"pattern\":\"{}\",\"path\":\"{}\",\"output_mode\":\"content\",\"-n\":true,\"glob\":\"*.ts\"}}",
            camel(dice),
            dice.pick(ROOTS)
        ),
        7 => format!("{{\"pattern\":\"**/*.{}\"}}", dice.pick(EXTENSIONS)),
        8 => {
            let text = code(dice, 12);
            format!("{{\"file_path\":\"{path}\",\"content\":{}}}", quoted(&text))
        }
        9 => {
            let todos: Vec<String> = (0..4)
                .map(|n| {
                    format!(
                        "{{\"content\":\"{} the {}\",\"status\":\"{}\",\"activeForm\":\"{} the {}\"}}",
                        capital(dice.pick(VERBS)),
                        dice.pick(NOUNS),
                        ["completed", "in_progress", "pending", "pending"].get(n).unwrap_or(&"pending"),
                        capital(dice.pick(VERBS)),
                        dice.pick(NOUNS)
                    )
                })
                .collect();
            format!("{{\"todos\":[{}]}}", todos.join(","))
        }
        10 => format!(
            "{{\"description\":\"Explore {}\",\"prompt\":{},\"subagent_type\":\"Explore\"}}",
            dice.pick(NOUNS),
            quoted(&prose(dice))
        ),
        11 => format!(
            "{{\"command\":[\"bash\",\"-lc\",\"rg -n '{}' {}\"],\"workdir\":\"{}\"}}",
            camel(dice),
            dice.pick(FOLDERS),
            dice.pick(ROOTS)
        ),
        12 => format!(
            "{{\"cmd\":\"sed -n '1,{}p' {}\",\"workdir\":\"{}\",\"yield_time_ms\":1000,\"max_output_tokens\":12000}}",
            10 * (1 + dice.roll(30)),
            file(dice),
            dice.pick(ROOTS)
        ),
        13 => {
            let text = code(dice, 5);
            let lines: Vec<String> = text.lines().map(|line| format!("+{line}")).collect();
            format!("*** Begin Patch\n*** Update File: {path}\n@@\n{}\n*** End Patch\n", lines.join("\n"))
        }
        14 => format!(
            "{{\"plan\":[{{\"status\":\"completed\",\"step\":\"{}\"}},{{\"status\":\"in_progress\",\"step\":\"{}\"}}],\"explanation\":\"\"}}",
            sentence(dice).replace(['"', '\n'], " "),
            sentence(dice).replace(['"', '\n'], " ")
        ),
        _ => format!(
            "{{\"url\":\"https://docs.example.com/{}/{}\",\"prompt\":\"How to {} the {}?\"}}",
            dice.pick(NOUNS),
            dice.pick(NOUNS),
            dice.pick(VERBS),
            dice.pick(NOUNS)
        ),
    }
}

pub(crate) fn usage(dice: &mut Dice) -> String {
    let (read, write) = (dice.roll(90_000), dice.roll(9000));
    format!(
        "\"usage\":{{\"input_tokens\":{},\"cache_creation_input_tokens\":{write},\"cache_read_input_tokens\":{read},\"cache_creation\":{{\"ephemeral_5m_input_tokens\":{write},\"ephemeral_1h_input_tokens\":0}},\"output_tokens\":{},\"service_tier\":\"standard\",\"inference_geo\":\"not_available\"}}",
        dice.roll(20),
        dice.roll(400)
    )
}

pub(crate) fn record(dice: &mut Dice) -> String {
    let (uuid, parent, session, time) = (dice.uuid(), dice.uuid(), dice.uuid(), dice.time());
    let (root, branch, model) = (dice.pick(ROOTS), dice.pick(BRANCHES), dice.pick(MODELS));
    let (tool, call) = (dice.pick(TOOLS), dice.token(24));
    let version = format!("2.{}.{}", dice.roll(2), dice.roll(80));
    let common = format!(
        "{{\"parentUuid\":\"{parent}\",\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"{root}\",\"sessionId\":\"{session}\",\"version\":\"{version}\",\"gitBranch\":\"{branch}\",\"slug\":\"quiet-{}-{}\"",
        dice.pick(VERBS),
        dice.pick(NOUNS)
    );
    match dice.roll(16) {
        0 | 1 => format!(
            "{common},\"message\":{{\"model\":\"{model}\",\"id\":\"msg_01{}\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[{{\"type\":\"tool_use\",\"id\":\"toolu_01{call}\",\"name\":\"{tool}\",\"input\":{},\"caller\":{{\"type\":\"direct\"}}}}],\"stop_reason\":null,\"stop_sequence\":null,{}}},\"requestId\":\"req_011{}\",\"type\":\"assistant\",\"uuid\":\"{uuid}\",\"timestamp\":\"{time}\"}}",
            dice.token(22),
            parameters(dice),
            usage(dice),
            dice.token(21)
        ),
        2 => format!(
            "{common},\"message\":{{\"model\":\"{model}\",\"id\":\"msg_01{}\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":{}}}],\"stop_reason\":\"end_turn\",\"stop_sequence\":null,{}}},\"requestId\":\"req_011{}\",\"type\":\"assistant\",\"uuid\":\"{uuid}\",\"timestamp\":\"{time}\"}}",
            dice.token(22),
            quoted(&prose(dice)),
            usage(dice),
            dice.token(21)
        ),
        3 => format!(
            "{common},\"message\":{{\"model\":\"{model}\",\"id\":\"msg_01{}\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[{{\"type\":\"thinking\",\"thinking\":{},\"signature\":\"{}\"}}],\"stop_reason\":null,\"stop_sequence\":null,{}}},\"requestId\":\"req_011{}\",\"type\":\"assistant\",\"uuid\":\"{uuid}\",\"timestamp\":\"{time}\"}}",
            dice.token(22),
            quoted(&prose(dice)),
            dice.token(64),
            usage(dice),
            dice.token(21)
        ),
        4 | 5 => {
            let output = run(dice);
            format!(
                "{common},\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":[{{\"tool_use_id\":\"toolu_01{call}\",\"type\":\"tool_result\",\"content\":{},\"is_error\":false}}]}},\"uuid\":\"{uuid}\",\"timestamp\":\"{time}\",\"toolUseResult\":{{\"stdout\":{},\"stderr\":\"\",\"interrupted\":false,\"isImage\":false,\"noOutputExpected\":false}},\"sourceToolAssistantUUID\":\"{parent}\"}}",
                quoted(&output),
                quoted(&output)
            )
        }
        6 => {
            let (path, old, new) = (whole_path(dice), code(dice, 2), code(dice, 3));
            format!(
                "{common},\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":[{{\"tool_use_id\":\"toolu_01{call}\",\"type\":\"tool_result\",\"content\":\"The file {path} has been updated successfully.\"}}]}},\"uuid\":\"{uuid}\",\"timestamp\":\"{time}\",\"toolUseResult\":{{\"filePath\":\"{path}\",\"oldString\":{},\"newString\":{},\"originalFile\":null,\"structuredPatch\":[{{\"oldStart\":{},\"oldLines\":7,\"newStart\":{},\"newLines\":9,\"lines\":[\"  \",\"-  \",\"+  \"]}}],\"userModified\":false,\"replaceAll\":false}},\"sourceToolAssistantUUID\":\"{parent}\"}}",
                quoted(&old),
                quoted(&new),
                dice.roll(300),
                dice.roll(300)
            )
        }
        7 => format!(
            "{common},\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":{}}},\"uuid\":\"{uuid}\",\"timestamp\":\"{time}\",\"thinkingMetadata\":{{\"level\":\"high\",\"disabled\":false,\"triggers\":[]}},\"todos\":[],\"permissionMode\":\"default\"}}",
            quoted(&sentence(dice))
        ),
        8 => format!(
            "{common},\"type\":\"progress\",\"data\":{{\"type\":\"hook_progress\",\"hookEvent\":\"PostToolUse\",\"hookName\":\"PostToolUse:{tool}\",\"command\":\"callback\"}},\"parentToolUseID\":\"toolu_01{call}\",\"toolUseID\":\"toolu_01{call}\",\"timestamp\":\"{time}\",\"uuid\":\"{uuid}\"}}"
        ),
        9 => format!(
            "{{\"type\":\"file-history-snapshot\",\"messageId\":\"{uuid}\",\"snapshot\":{{\"messageId\":\"{parent}\",\"trackedFileBackups\":{{\"{}\":{{\"backupFileName\":\"{}@v2\",\"version\":2,\"backupTime\":\"{time}\"}}}},\"timestamp\":\"{time}\"}},\"isSnapshotUpdate\":true}}",
            file(dice),
            dice.hex(16)
        ),
        10 => format!(
            "{common},\"type\":\"system\",\"subtype\":\"turn_duration\",\"durationMs\":{},\"timestamp\":\"{time}\",\"uuid\":\"{uuid}\",\"isMeta\":false}}",
            dice.roll(200_000)
        ),
        11 => format!(
            "{{\"timestamp\":\"{time}\",\"type\":\"response_item\",\"payload\":{{\"type\":\"function_call\",\"name\":\"{}\",\"arguments\":{},\"call_id\":\"call_{call}\"}}}}",
            dice.pick(&["exec_command", "shell_command", "update_plan", "write_stdin"]),
            quoted(&parameters(dice))
        ),
        12 => format!(
            "{{\"timestamp\":\"{time}\",\"type\":\"response_item\",\"payload\":{{\"type\":\"function_call_output\",\"call_id\":\"call_{call}\",\"output\":{}}}}}",
            quoted(&run(dice))
        ),
        13 => {
            let (a, b, c, d) = (dice.roll(900_000), dice.roll(900_000), dice.roll(9000), dice.roll(4000));
            format!(
                "{{\"timestamp\":\"{time}\",\"type\":\"event_msg\",\"payload\":{{\"type\":\"token_count\",\"info\":{{\"total_token_usage\":{{\"input_tokens\":{a},\"cached_input_tokens\":{b},\"output_tokens\":{c},\"reasoning_output_tokens\":{d},\"total_tokens\":{a}}},\"last_token_usage\":{{\"input_tokens\":{b},\"cached_input_tokens\":{a},\"output_tokens\":{d},\"reasoning_output_tokens\":{c},\"total_tokens\":{b}}},\"model_context_window\":258400}},\"rate_limits\":{{\"limit_id\":\"codex\",\"limit_name\":null,\"primary\":{{\"used_percent\":{}.0,\"window_minutes\":300,\"resets_at\":17{}}},\"secondary\":{{\"used_percent\":{}.0,\"window_minutes\":10080,\"resets_at\":17{}}},\"credits\":null,\"plan_type\":null}}}}}}",
                dice.roll(100),
                dice.roll(99_999_999),
                dice.roll(100),
                dice.roll(99_999_999)
            )
        }
        14 => format!(
            "{{\"timestamp\":\"{time}\",\"type\":\"response_item\",\"payload\":{{\"type\":\"reasoning\",\"summary\":[{{\"type\":\"summary_text\",\"text\":{}}}],\"content\":null,\"encrypted_content\":\"gAAAAAB{}\"}}}}",
            quoted(&sentence(dice)),
            dice.token(60)
        ),
        _ => format!(
            "{{\"type\":\"tool.execution_complete\",\"data\":{{\"toolCallId\":\"toolu_{call}\",\"success\":true,\"result\":{{\"content\":{},\"detailedContent\":\"\"}},\"toolTelemetry\":{{\"properties\":{{\"command\":\"view\"}},\"metrics\":{{\"resultLength\":{}}}}}}},\"id\":\"{uuid}\",\"timestamp\":\"{time}\",\"parentId\":\"{parent}\"}}",
            quoted(&listing(dice)),
            dice.roll(4000)
        ),
    }
}
