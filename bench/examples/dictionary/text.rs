//! Prose and source text.

use crate::words::{Dice, FOLDERS, NOUNS, VERBS, camel, capital, file, snake};

pub(crate) fn sentence(dice: &mut Dice) -> String {
    let (noun, other, verb) = (dice.pick(NOUNS), dice.pick(NOUNS), dice.pick(VERBS));
    let (name, at) = (camel(dice), file(dice));
    match dice.roll(28) {
        0 => format!("Let me {verb} the {noun} first to understand how the {other} works."),
        1 => format!("Now I'll {verb} the {noun} in `{at}`."),
        2 => {
            format!("The {noun} is not what I expected: `{name}` returns the {other} instead of the {noun}.")
        }
        3 => format!("All tests pass. The {noun} has been updated and the {other} works as expected."),
        4 => format!("I've added a test for `{name}` that covers the case where the {noun} is missing."),
        5 => format!("I need to look at the existing {noun} implementation before making changes."),
        6 => format!("Can you {verb} the {noun} so that it doesn't {verb} the {other} twice?"),
        7 => format!("This change makes sure that the {noun} is only used when there is a {other}."),
        8 => format!(
            "There are a few issues here. First, the {noun} should not be null. Second, the {other} is never closed."
        ),
        9 => "Good, the build succeeds. Let me run the tests to verify that everything works correctly."
            .to_string(),
        10 => format!(
            "Looking at the code, I can see that `{name}` is called from `{at}` with the wrong {noun}."
        ),
        11 => format!(
            "The error message says that the {noun} could not be found, which means the {other} was not created."
        ),
        12 => format!(
            "Here's a summary of what was changed:\n\n1. **{}** - updated to handle the new {other}\n2. **{name}** - now returns an error\n3. Added tests for both cases",
            capital(noun)
        ),
        13 => format!(
            "You should {verb} the {noun} and then {verb} the {other}. If this is not possible, please let me know."
        ),
        14 => format!("Perfect! Now let me update the {noun} to use the new {other}:"),
        15 => format!(
            "**{} {noun}**\n\nI'm thinking about how the {other} should be handled. The user wants the {noun} to be simple.",
            capital(verb)
        ),
        16 => format!("please fix the failing {noun} tests and make sure the {other} still works"),
        17 => {
            format!("- [ ] {} the {noun}\n- [x] {} the {other}\n", capital(verb), capital(dice.pick(VERBS)))
        }
        18 => "I'll help you with that. Let me start by exploring the codebase to find the relevant files."
            .to_string(),
        19 => format!("The file {at} has been updated successfully."),
        20 => format!(
            "This is because the {noun} and the {other} are different from each other, so we would have to change both of them."
        ),
        21 => format!(
            "What would you like me to do next? I could also {verb} the {noun} if that would be helpful."
        ),
        22 => format!(
            "## {} {}\n\nThe following section describes how the {noun} is used with the {other}.\n",
            capital(noun),
            capital(other)
        ),
        23 => format!(
            "| Name | Type | Description |\n|------|------|-------------|\n| `{noun}` | string | The {noun} of the {other} |\n"
        ),
        24 => format!(
            "However, there's one more thing: when the {noun} already exists, the {other} should be replaced without asking."
        ),
        25 => format!("For example:\n\n```bash\nnpm run build\nnpm test -- --watch={noun}\n```\n"),
        26 => format!(
            "I don't think that's right. It looks like the {noun} was removed from the {other} in a previous commit."
        ),
        _ => format!("The {noun} should be able to {verb} the {other} without any additional configuration."),
    }
}

pub(crate) fn prose(dice: &mut Dice) -> String {
    let count = 1 + dice.roll(6);
    let sentences: Vec<String> = (0..count).map(|_| sentence(dice)).collect();
    sentences.join(dice.pick(&[" ", "\n\n", "\n"]))
}

#[expect(clippy::too_many_lines, reason = "a list of samples")]
pub(crate) fn code_line(dice: &mut Dice) -> String {
    let (noun, other) = (dice.pick(NOUNS), dice.pick(NOUNS));
    let (camel_name, snake_name, class) = (camel(dice), snake(dice), capital(noun));
    let number = dice.roll(100);
    match dice.roll(62) {
        0 => format!("import {{ {class} }} from '../{}/{noun}';", dice.pick(FOLDERS)),
        1 => "import { describe, it, expect, beforeEach, vi } from 'vitest';".to_string(),
        2 => format!(
            "export async function {camel_name}({noun}: string, options: {class}Options = {{}}): Promise<{class} | undefined> {{"
        ),
        3 => format!("  const {noun} = await {camel_name}({other});"),
        4 => format!("  if (!{noun}) {{\n    throw new Error(`{class} not found: ${{{other}}}`);\n  }}"),
        5 => format!("    return {noun}.{other}.map((item) => item.{other});"),
        6 => format!(
            "export interface {class}Config {{\n  {other}: string;\n  {noun}?: number;\n  enabled: boolean;\n}}"
        ),
        7 => format!(
            "    it('should {} the {noun} when the {other} is empty', async () => {{",
            dice.pick(VERBS)
        ),
        8 => format!(
            "      expect(result.{noun}).toBe({number});\n      expect(result.{other}).toEqual([]);\n    }});"
        ),
        9 => format!(
            "  }} catch (error) {{\n    console.error('Failed to {}:', error);\n    process.exit(1);\n  }}",
            dice.pick(VERBS)
        ),
        10 => format!("const {noun} = useState<{class} | null>(null);"),
        11 => format!(
            "      <div className=\"flex items-center justify-between px-4 py-2 text-sm\">\n        {{{noun}}}\n      </div>"
        ),
        12 => format!("pub fn {snake_name}(&self, {noun}: &str) -> Result<{class}, Error> {{"),
        13 => format!(
            "    let {noun} = self.{other}.get(&{noun}).ok_or_else(|| anyhow!(\"missing {other}\"))?;"
        ),
        14 => format!(
            "#[derive(Debug, Clone, PartialEq, Eq)]\npub struct {class} {{\n    pub {other}: String,\n    pub {noun}: Option<u64>,\n}}"
        ),
        15 => format!(
            "    match {noun} {{\n        Some({other}) => {other}.into_iter().collect(),\n        None => Vec::new(),\n    }}"
        ),
        16 => "use std::collections::HashMap;\nuse std::path::{Path, PathBuf};".to_string(),
        17 => format!(
            "    #[test]\n    fn {snake_name}_works() {{\n        assert_eq!({noun}.len(), {number});\n    }}"
        ),
        18 => format!(
            "impl {class} {{\n    pub fn new({other}: impl Into<String>) -> Self {{\n        Self {{ {other}: {other}.into() }}\n    }}"
        ),
        19 => {
            format!("def {snake_name}(self, {noun}: str, {other}: Optional[int] = None) -> Dict[str, Any]:")
        }
        20 => format!(
            "    \"\"\"Return the {noun} for the given {other}.\n\n    Args:\n        {noun}: The {noun} to use.\n    \"\"\""
        ),
        21 => format!(
            "        if {noun} is None:\n            raise ValueError(f\"{noun} must not be None: {{{other}}}\")"
        ),
        22 => "import os\nimport sys\nimport json\nfrom typing import Any, Dict, List, Optional".to_string(),
        23 => format!("    for {noun} in self.{other}:\n        self.{snake_name}({noun})"),
        24 => format!(
            "class {class}({}Base):\n    def __init__(self, *args, **kwargs):\n        super().__init__(*args, **kwargs)",
            capital(other)
        ),
        25 => format!(
            "func (s *{class}) {}(ctx context.Context, {noun} string) (*{class}, error) {{",
            capital(&camel_name)
        ),
        26 => format!(
            "\tif err != nil {{\n\t\treturn nil, fmt.Errorf(\"failed to {} {noun}: %w\", err)\n\t}}",
            dice.pick(VERBS)
        ),
        27 => format!("\t{noun}, err := s.{other}.{}(ctx, {noun})", capital(&camel_name)),
        28 => format!("\tt.Run(\"{noun} {other}\", func(t *testing.T) {{\n\t\tt.Parallel()"),
        29 => format!("package {noun}\n\nimport (\n\t\"context\"\n\t\"fmt\"\n\t\"os\"\n\t\"strings\"\n)"),
        30 => format!("\t\tt.Fatalf(\"{camel_name}() error = %v\", err)"),
        31 => format!("// {} {} the {noun} of the {other}.", capital(&camel_name), dice.pick(VERBS)),
        32 => format!("  // TODO: {} this when the {noun} is ready", dice.pick(VERBS)),
        33 => format!("  \"{noun}\": \"{other}\",\n  \"version\": \"1.{number}.0\",\n  \"dependencies\": {{"),
        34 => "  \"scripts\": {\n    \"build\": \"tsc -p tsconfig.json\",\n    \"test\": \"vitest run\",\n    \"lint\": \"eslint src --ext .ts,.tsx\"\n  },".to_string(),
        35 => format!(
            "[dependencies]\n{noun} = \"0.{number}\"\nserde = {{ version = \"1.0\", features = [\"derive\"] }}"
        ),
        36 => format!("{noun}:\n  - name: {other}\n    run: npm ci\n    with:\n      node-version: 20"),
        37 => format!(
            "            '{noun}': {{\n                'type': 'string',\n                'description': 'The {noun} of the {other}',\n            }},"
        ),
        38 => format!(
            "  /**\n   * {} the {noun}.\n   * @param {other} - the {other} to use\n   * @returns the {noun}, or undefined if there is none\n   */",
            capital(dice.pick(VERBS))
        ),
        39 => format!("  private readonly {noun} = new Map<string, {class}>();"),
        40 => format!("    this.{noun}.set({other}.id, {other});\n    return this.{noun}.get({other}.id);"),
        41 => format!(
            "  switch ({noun}.type) {{\n    case '{other}':\n      break;\n    default:\n      return null;\n  }}"
        ),
        42 => "  }\n}\n".to_owned(),
        43 => "    })\n  })\n})".to_owned(),
        44 => format!("    if len({noun}) == 0 {{\n        return nil\n    }}"),
        45 => format!("        let mut {noun} = Vec::with_capacity({other}.len());"),
        46 => format!(
            "    async with self.{noun}.{other}() as {noun}:\n        await {noun}.{}()",
            dice.pick(VERBS)
        ),
        47 => format!(
            "app.get('/api/{noun}/:id', async (req, res) => {{\n  res.status(200).json({{ {noun}, success: true }});\n}});"
        ),
        48 => format!(
            "SELECT id, name, created_at FROM {noun}s WHERE {other}_id = $1 ORDER BY created_at DESC LIMIT {number};"
        ),
        49 => format!(
            "#!/bin/bash\nset -euo pipefail\n\nif [ -z \"${{{}:-}}\" ]; then\n  echo \"{noun} is not set\" >&2\n  exit 1\nfi",
            noun.to_uppercase()
        ),
        50 => format!("\tdefer {noun}.Close()"),
        51 => format!(
            "    fn from({noun}: {class}Error) -> Self {{\n        Error::{class}({noun}.to_string())\n    }}"
        ),
        52 => {
            format!("    self.assertEqual(result['{noun}'], {number})\n    self.assertTrue(result.{other})")
        }
        53 => format!("    @pytest.fixture\n    def {noun}(self):\n        return {class}({other}=True)"),
        54 => format!("module.exports = {{ {camel_name}, {noun} }};"),
        55 => format!("const {noun} = require('{other}');"),
        56 => format!(
            "  return (\n    <>\n      <{class} key={{{other}.id}} onClick={{() => {camel_name}({other})}} />\n    </>\n  );"
        ),
        57 => format!(
            "export const {} = {{\n  name: '{noun}',\n  description: '{}',\n  required: true,\n}};",
            noun.to_uppercase(),
            sentence(dice)
        ),
        58 => format!(
            ".{noun} {{\n  display: flex;\n  padding: {number}px;\n  background-color: var(--{other}-color);\n}}"
        ),
        59 => String::new(),
        60 => format!("    let Some({noun}) = {other}.{noun}() else {{\n        return Ok(());\n    }};"),
        _ => format!("    {noun}.{camel_name}({other}, {number});"),
    }
}

pub(crate) fn code(dice: &mut Dice, lines: usize) -> String {
    let lines: Vec<String> = (0..lines).map(|_| code_line(dice)).collect();
    lines.join("\n")
}
