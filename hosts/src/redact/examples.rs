//! An example of each form that is found, and a near miss that is not. All are made up; `{n:set}` stands for n signs of a set, so that no text
//! here is a token.

/// Rule, example, near miss.
pub(super) const EXAMPLES: &[(&str, &str, &str)] = &[
    (
        "private-key",
        "-----BEGIN RSA PRIV{0:a}ATE KEY-----\nMIIE{60:a}\n{64:a}\n-----END RSA PRIV{0:a}ATE KEY-----",
        "-----BEGIN PUBLIC KEY-----\nMIIB{60:a}\n-----END PUBLIC KEY-----",
    ),
    (
        "private-key",
        "-----BEGIN PRIV{0:a}ATE KEY-----\nMIIE{60:a}",
        "-----BEGIN PRIV{0:a}ATE KEY----- is how one begins",
    ),
    (
        "private-key",
        "---- BEGIN SSH2 ENCRYPTED PRIV{0:a}ATE KEY ----\n{64:a}\n---- END SSH2 ENCRYPTED PRIV{0:a}ATE KEY ----",
        "---- BEGIN SSH2 PUBLIC KEY ----\n{64:a}\n---- END SSH2 PUBLIC KEY ----",
    ),
    (
        "putty-key",
        "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPublic-Lines: 1\n{64:a}\nPrivate-Lines: 1\n{48:a}",
        "PuTTY-User-Key-File-3: ssh-ed25519\nPublic-Lines: 1\n{64:a}",
    ),
    ("age-key", "AGE-SECRET-KEY-1{58:u}", "AGE-SECRET-KEY-1{20:u}"),
    ("anthropic-key", "sk-ant-api03-{40:a}", "sk-ant-api03"),
    ("openrouter-key", "sk-or-v1-{64:h}", "sk-or-v1-{10:h}"),
    ("openai-key", "sk-proj-{60:a}", "sk-project-setup-notes"),
    ("openai-key", "sk-{48:a}", "task-{8:w}-{8:w}-{8:w}-{8:w}"),
    ("huggingface-token", "hf_{34:a}", "hf_hub_download_of_a_file"),
    ("groq-key", "gsk_{52:a}", "gsk_{12:a}"),
    ("xai-key", "xai-{80:a}", "xai-grok-beta"),
    ("perplexity-key", "pplx-{48:a}", "pplx-7b-online"),
    ("replicate-token", "r8_{37:a}", "r8_{9:a}"),
    ("nvidia-key", "nvapi-{64:a}", "nvapi-{10:a}"),
    ("pinecone-key", "pcsk_{70:a}", "pcsk_{9:a}"),
    ("langsmith-key", "lsv2_pt_{32:h}_{10:h}", "lsv2_pt_{8:h}"),
    ("cursor-key", "crsr_{64:h}", "crsr_{6:h}"),
    ("elevenlabs-key", "sk_{48:h}", "sk_{20:h}"),
    ("tavily-key", "tvly-dev-{32:a}", "tvly-{9:a}"),
    ("posthog-key", "phx_{43:a}", "phx_{12:a}"),
    ("github-token", "ghp_{36:a}", "ghp_{20:a}"),
    ("github-token", "github_pat_{22:a}_{59:a}", "github_pat_{20:a}"),
    ("gitlab-token", "glpat-{20:a}", "glpat-{10:a}"),
    ("atlassian-token", "ATATT3xFfGF0{180:a}", "ATATT3xFf{20:a}"),
    ("npm-token", "npm_{36:a}", "npm_config_registry"),
    ("pypi-token", "pypi-AgEIcHlwaS5vcmc{80:a}", "pypi-AgEIcHlwaS5vcmc"),
    ("rubygems-key", "rubygems_{48:h}", "rubygems_version"),
    ("crates-token", "cio{32:a}", "cio{31:a}"),
    ("docker-token", "dckr_pat_{27:a}", "dckr_pat_{9:a}"),
    ("artifactory-key", "AKCp8{68:a}", "AKCp8{30:a}"),
    ("buildkite-token", "bkua_{40:h}", "bkua_{20:h}"),
    ("circleci-token", "CCIPAT_{22:a}_{40:h}", "CCIPAT_{22:a}_{4:h}"),
    ("terraform-token", "{14:a}.atlasv1.{64:a}", "{14:a}.atlasv1.{8:a}"),
    ("postman-key", "PMAK-{24:h}-{34:h}", "PMAK-{24:h}"),
    ("linear-key", "lin_api_{40:a}", "lin_api_{8:a}"),
    ("sonar-token", "sqp_{40:h}", "sqp_{12:h}"),
    ("sourcegraph-token", "sgp_{16:h}_{40:h}", "sgp_{16:h}"),
    ("nuget-key", "oy2{43:v}", "oy2{20:v}"),
    ("clojars-token", "CLOJARS_{60:v}", "CLOJARS_{9:v}"),
    ("pulumi-token", "pul-{40:h}", "pul-{12:h}"),
    ("prefect-key", "pnu_{36:a}", "pnu_{9:a}"),
    ("octopus-key", "API-{26:u}", "API-{10:u}"),
    ("harness-token", "pat.{22:a}.{24:h}.{20:a}", "pat.{22:a}.{8:h}"),
    ("readme-key", "rdme_{70:v}", "rdme_{12:v}"),
    ("infracost-key", "ico-{32:a}", "ico-{9:a}"),
    ("sentry-token", "sntryu_{64:h}", "sntryu_{8:h}"),
    ("aws-access-key", "AKIA{16:u}", "AKIA{12:u}"),
    ("aws-secret-key", "aws_secret_access_key = {40:b}", "aws_secret_access_key = {12:b}"),
    ("aws-secret-key", "AWS Secret Access Key [None]: {40:b}", "AWS Secret Access Key [None]: {12:b}"),
    (
        "aws-secret-key",
        "<SecretAccessKey>{40:b}</SecretAccessKey>",
        "<SecretAccessKey>{12:b}</SecretAccessKey>",
    ),
    ("aws-secret-key", "secret_key = \"{40:b}\"", "secret_key = \"{40:h}\""),
    ("aws-bedrock-key", "ABSK{120:b}", "ABSK{20:b}"),
    ("aws-session-token", "aws_session_token={120:b}", "aws_session_token={12:b}"),
    ("alibaba-key", "LTAI{20:a}", "LTAI{8:a}"),
    ("yandex-key", "AQVN{36:a}", "AQVN{9:a}"),
    ("netlify-token", "nfp_{36:a}", "nfp_{9:a}"),
    ("openshift-token", "sha256~{43:a}", "sha256:{64:h}"),
    ("scalingo-token", "tk-us-{48:a}", "tk-us-{9:a}"),
    ("neon-key", "napi_{64:v}", "napi_{12:v}"),
    ("google-key", "AIza{35:a}", "AIza{20:a}"),
    ("google-oauth-secret", "GOCSPX-{28:a}", "GOCSPX-{8:a}"),
    ("google-token", "ya29.{100:a}", "ya29.{8:a}"),
    ("azure-key", "AccountKey={86:b}==", "AccountKey={12:b}=="),
    ("azure-secret", "aB18Q~{34:a}", "aB18Q~{12:a}"),
    ("azure-signature", "https://x.blob.example/c?sv=2022&sig={43:a}%3D", "https://x.example/?sig={8:a}%3D"),
    ("digitalocean-token", "dop_v1_{64:h}", "dop_v1_{32:h}"),
    ("heroku-key", "HRKU-AA{58:a}", "HRKU-AA{8:a}"),
    ("cloudflare-key", "v1.0-{24:h}-{146:h}", "v1.0-{24:h}-{8:h}"),
    ("fly-token", "fo1_{43:a}", "fo1_{20:a}"),
    ("vercel-token", "vercel_{24:a}", "vercel_{12:a}"),
    ("supabase-key", "sbp_{40:h}", "sbp_{20:h}"),
    ("planetscale-token", "pscale_tkn_{43:a}", "pscale_tkn_{12:a}"),
    ("databricks-token", "dapi{32:h}", "dapi{20:h}"),
    ("vault-token", "hvs.{90:a}", "hvs.{8:a}"),
    ("doppler-token", "dp.pt.{43:a}", "dp.pt.{12:a}"),
    ("tailscale-key", "tskey-auth-{12:a}-{32:a}", "tskey-auth-{12:a}"),
    ("onepassword-key", "A3-{6:u}-{6:u}-{5:u}-{5:u}-{5:u}-{5:u}", "A3-{6:u}-{6:u}-{5:u}"),
    ("onepassword-token", "ops_eyJ{200:a}", "ops_eyJ{20:a}"),
    ("dynatrace-token", "dt0c01.{24:u}.{64:u}", "dt0c01.{24:u}"),
    ("newrelic-key", "NRAK-{27:u}", "NRAK-{9:u}"),
    ("grafana-token", "glsa_{32:a}_{8:h}", "glsa_{12:a}_{8:h}"),
    ("slack-token", "xoxb-{12:d}-{12:d}-{24:a}", "xoxb-{5:d}"),
    (
        "slack-webhook",
        "https://hooks.slack.com/services/T{8:u}/B{8:u}/{24:a}",
        "https://hooks.slack.com/services/T{8:u}",
    ),
    (
        "discord-webhook",
        "https://discord.com/api/webhooks/{18:d}/{68:a}",
        "https://discord.com/api/webhooks/{18:d}",
    ),
    ("discord-token", "MT{22:a}.G{5:a}.{32:a}", "MT{22:a}.G{5:a}"),
    ("telegram-token", "{9:d}:AA{33:a}", "{9:d}:AA{12:a}"),
    ("sendgrid-key", "SG.{22:a}.{43:a}", "SG.{22:a}.{9:a}"),
    ("twilio-key", "SK{32:h}", "SK{20:h}"),
    ("mailgun-key", "key-{32:h}", "key-{20:h}"),
    ("mailchimp-key", "{32:h}-us12", "{32:h}-eu12"),
    ("brevo-key", "xkeysib-{64:h}-{16:a}", "xkeysib-{64:h}"),
    ("resend-key", "re_{8:a}_{24:a}", "re_{8:a}_{6:a}"),
    ("stripe-key", "sk_test_{24:a}", "sk_test_{12:a}"),
    ("stripe-webhook", "whsec_{32:a}", "whsec_{12:a}"),
    ("plaid-token", "access-production-{8:h}-{4:h}-{4:h}-{4:h}-{12:h}", "access-production-{8:h}"),
    ("shippo-token", "shippo_live_{40:h}", "shippo_live_{8:h}"),
    ("duffel-token", "duffel_test_{43:a}", "duffel_test_{8:a}"),
    ("easypost-key", "EZAK{54:a}", "EZAK{12:a}"),
    ("flutterwave-key", "FLWSECK_TEST-{32:v}-X", "FLWSECK_TEST-{32:v}"),
    ("facebook-token", "EAAM{120:a}", "data:image/png;base64,iVBO{30:a}EAAM{120:a}"),
    ("dropbox-token", "sl.u.{130:a}", "sl.u.{20:a}"),
    ("frameio-token", "fio-u-{64:a}", "fio-u-{12:a}"),
    (
        "teams-webhook",
        "https://x.webhook.office.com/webhookb2/{8:h}-{4:h}-{4:h}-{4:h}-{12:h}@{8:h}-{4:h}-{4:h}-{4:h}-{12:h}/IncomingWebhook/{32:h}/x",
        "https://x.webhook.office.com/webhookb2/{8:h}",
    ),
    (
        "zapier-webhook",
        "https://hooks.zapier.com/hooks/catch/{7:d}/{7:a}",
        "https://hooks.zapier.com/hooks/catch/",
    ),
    ("square-token", "sq0atp-{22:a}", "sq0atp-{8:a}"),
    ("shopify-token", "shpat_{32:h}", "shpat_{16:h}"),
    ("notion-token", "ntn_{46:a}", "ntn_{12:a}"),
    ("airtable-token", "pat{14:a}.{64:h}", "pat{14:a}.{12:h}"),
    ("figma-token", "figd_{40:a}", "figd_{12:a}"),
    ("hubspot-token", "pat-na1-{8:h}-{4:h}-{4:h}-{4:h}-{12:h}", "pat-na1-{8:h}"),
    ("typeform-token", "tfp_{59:a}", "tfp_{20:a}"),
    ("contentful-token", "CFPAT-{43:a}", "CFPAT-{20:a}"),
    ("mapbox-token", "sk.eyJ{40:a}.{22:a}", "sk.eyJ{8:a}"),
    ("jwt", "eyJ{30:a}.eyJ{60:a}.{43:a}", "eyJ{30:a}.{60:a}"),
    ("basic", "Authorization: Basic dXNlcjpodW50ZXIyMmh1bnRlcjIy", "Basic authentication is used here"),
    ("bearer", "Authorization: Bearer {40:h}", "Authorization: Bearer YOUR_TOKEN_GOES_HERE_123"),
    ("bearer", "authorization: token {40:h}", "authorization: token of the session that is open"),
    ("header-key", "X-Api-Key: {32:h}", "X-Api-Key: your_key_goes_here_1"),
    ("header-key", "curl -H 'PRIVATE-TOKEN: {26:a}'", "X-Api-Key: header of requests"),
    ("url-password", "redis://:sup3rsecret@host", "https://host:8080/a@b"),
    ("url-password", "https://oauth2:abc@h", "https://user:${PASSWORD}@h"),
    ("url-password", "postgres://u:p%40ss@h", "postgres://user:password@h"),
    ("url-password", "postgres://u:pa/ss@h", "git@github.com:owner/name"),
    (
        "command-password",
        "curl -u admin:hunter2hunter2 https://x.example",
        "curl -u \"$NAME:$WORD\" https://x.example",
    ),
    (
        "netrc-password",
        "machine git.example login me password s3cretpassw0rd",
        "machine git.example login me",
    ),
    ("environment-secret", "DB_PASSWORD=Tr0ub4dor&3xyz", "DB_PASSWORD=$(cat file)"),
    ("environment-secret", "API_TOKEN={32:h}", "API_TOKEN=your_token_1_here_2"),
];

/// The text of an example.
pub(super) fn filled(form: &str) -> String {
    let mut out = String::new();
    let mut parts = form.split('{');
    out.push_str(parts.next().unwrap_or_default());
    let mut turn = 0_usize;
    for part in parts {
        let Some((hole, after)) = part.split_once('}') else {
            out.push('{');
            out.push_str(part);
            continue;
        };
        let hole_of = |hole: &str| {
            let (count, set) = hole.split_once(':')?;
            let set = match set {
                "a" => "k7Qm2ZxP9vLr4TbWy8Hd3NsGf6Jc",
                "b" => "k7Qm2Z/P9vLr4Tb+y8Hd3NsGf6Jc",
                "h" => "3f9a0c7e51b8d264",
                "v" => "k7qm2zxp9vlr4tbwy8hd3nsgf6jc",
                "u" => "Q7M2Z4X9L3T5W8H6N",
                "w" => "settings",
                "d" => "1029384756",
                _ => return None,
            };
            // Braces around no number are text.
            Some((count.parse::<usize>().ok()?, set))
        };
        match hole_of(hole) {
            Some((count, set)) => {
                out.extend(set.chars().cycle().skip(turn).take(count));
                turn += 3;
            }
            None => out.push_str(&format!("{{{hole}}}")),
        }
        out.push_str(after);
    }
    out
}
