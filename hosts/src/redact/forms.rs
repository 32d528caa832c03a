//! The forms that issuers give to their keys and tokens, by what they publish of them.
//!
//! A form is a prefix that nothing else has, or a place that says what stands there (`Authorization: Basic`). A pattern without a prefix of its own
//! has a test behind it, or is left out: a rule that takes identifiers, digests or examples for secrets leaves holes in sessions.
//! Where a pattern names a group `secret`, the secret is that group, and the rest is the place where it stands.

use super::holds::{always, has_digit, is_aws_secret, is_basic, is_no_placeholder, is_random};

/// A form of a secret.
pub(super) struct SecretForm {
    pub(super) name: &'static str,
    pub(super) pattern: &'static str,
    /// A look at what the pattern found.
    pub(super) holds: fn(&[u8]) -> bool,
}

const fn form(name: &'static str, pattern: &'static str) -> SecretForm {
    SecretForm { name, pattern, holds: always }
}

const fn form_if(name: &'static str, pattern: &'static str, holds: fn(&[u8]) -> bool) -> SecretForm {
    SecretForm { name, pattern, holds }
}

/// A private key whose end may be cut off, as hosts cut long outputs: lines of base64, as they are or with escaped line breaks.
const PRIVATE_KEY: &str = concat!(
    r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}",
    r"(?:[A-Za-z0-9+/=\s\\:,._()-]*?-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}",
    r"|(?:(?:\s|\\[nrt])+(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset):[^\n\\]{0,120}|[A-Za-z0-9+/]{16,}={0,2}))+)",
);

/// All forms; the first that matches names the secret.
pub(super) const FORMS: &[SecretForm] = &[
    form("private-key", PRIVATE_KEY),
    form("putty-key", r"Private-Lines: [0-9]+(?:(?:\s|\\[nrt])+[A-Za-z0-9+/]{16,}={0,2})+"),
    form("age-key", r"AGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}"),
    // Models and their tools.
    form("anthropic-key", r"sk-ant-[A-Za-z0-9_-]{20,}"),
    form("openrouter-key", r"sk-or-v1-[0-9a-f]{64}"),
    form("openai-key", r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,}"),
    form_if("openai-key", r"(?:^|[^A-Za-z0-9-])(?P<secret>sk-[A-Za-z0-9_-]{32,})", has_digit),
    form("huggingface-token", r"(?:hf|api_org)_[A-Za-z0-9]{34}"),
    form("groq-key", r"gsk_[A-Za-z0-9]{40,}"),
    form("xai-key", r"xai-[A-Za-z0-9]{70,}"),
    form("perplexity-key", r"pplx-[A-Za-z0-9]{40,}"),
    form("replicate-token", r"r8_[A-Za-z0-9]{37}"),
    form("nvidia-key", r"nvapi-[A-Za-z0-9_-]{60,}"),
    form("pinecone-key", r"pcsk_[A-Za-z0-9_]{50,}"),
    form("langsmith-key", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    form("cursor-key", r"crsr_[0-9a-f]{64}"),
    form_if("elevenlabs-key", r"(?:^|[^A-Za-z0-9_])(?P<secret>sk_[0-9a-f]{48})\b", has_digit),
    form("tavily-key", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{32}"),
    form("posthog-key", r"ph[xs]_[A-Za-z0-9]{40,}"),
    // Places for code.
    form("github-token", r"gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{60,}"),
    form(
        "gitlab-token",
        r"gl(?:pat|ptt|rt|dt|cbt|ft|imt|agent|soat|oas|ffct)-[A-Za-z0-9_-]{20,}|GR1348941[A-Za-z0-9_-]{20,}",
    ),
    form("atlassian-token", r"AT(?:ATT|CTT)3xFf[A-Za-z0-9_=-]{100,}|ATBB[A-Za-z0-9]{32}"),
    form("npm-token", r"npm_[A-Za-z0-9]{36}"),
    form("pypi-token", r"pypi-AgE[A-Za-z0-9_-]{50,}"),
    form("rubygems-key", r"rubygems_[0-9a-f]{48}"),
    form_if("crates-token", r"(?:^|[^A-Za-z0-9])(?P<secret>cio[A-Za-z0-9]{32})(?:[^A-Za-z0-9]|$)", is_random),
    form("docker-token", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{27,}"),
    form("artifactory-key", r"AKCp[0-9][A-Za-z0-9]{68}"),
    form("buildkite-token", r"bkua_[0-9a-f]{40}"),
    form("circleci-token", r"CCIP(?:AT|RJ)_[A-Za-z0-9]{22}_[0-9a-f]{40}"),
    form("terraform-token", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}"),
    form("postman-key", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    form("linear-key", r"lin_(?:api|oauth)_[A-Za-z0-9]{40,}"),
    form("sonar-token", r"sq[pau]_[0-9a-f]{40}"),
    form("sourcegraph-token", r"sgp_(?:(?:[0-9a-f]{16}|local)_)?[0-9a-f]{40}"),
    form("nuget-key", r"(?:^|[^A-Za-z0-9])(?P<secret>oy2[a-z0-9]{43})(?:[^A-Za-z0-9]|$)"),
    form("clojars-token", r"CLOJARS_[a-z0-9]{60}"),
    form("pulumi-token", r"pul-[0-9a-f]{40}"),
    form("prefect-key", r"pn[ub]_[A-Za-z0-9]{36}"),
    form_if("octopus-key", r"(?:^|[^A-Za-z0-9-])(?P<secret>API-[A-Z0-9]{26})(?:[^A-Za-z0-9]|$)", has_digit),
    form("harness-token", r"[ps]at\.[A-Za-z0-9_-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}"),
    form("readme-key", r"rdme_[a-z0-9]{70}"),
    form("infracost-key", r"ico-[A-Za-z0-9]{32}"),
    form("sentry-token", r"sntrys_eyJ[A-Za-z0-9+/=_-]{40,}|sntryu_[0-9a-f]{64}"),
    // Clouds.
    form("aws-access-key", r"(?:^|[^A-Za-z0-9+])(?P<secret>(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16})\b"),
    form(
        "aws-secret-key",
        r#"(?i)(?:aws[_ -]?secret[_ -]?(?:access[_ -]?)?|secret[_ -]?access[_ -]?)key["']?(?:[ \t]*\[[^\]\n]{0,40}\])?[ \t]*[:=>][ \t]*\\?["']?[A-Za-z0-9/+=]{40}"#,
    ),
    // Of other clouds, too.
    form_if(
        "aws-secret-key",
        r#"(?i)\bsecret_?key["']?[ \t]*[:=][ \t]*\\?["']?(?P<secret>[A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)"#,
        is_aws_secret,
    ),
    // It has no form of its own: the id of the key stands before it.
    form_if(
        "aws-secret-key",
        r"(?s)(?:AKIA|ASIA)[A-Z0-9]{16}\b.{0,80}?[^A-Za-z0-9/+=](?P<secret>[A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)",
        is_aws_secret,
    ),
    form(
        "aws-session-token",
        r#"(?i)aws_?(?:session|security)_?token["']?[ \t]*[:=][ \t]*\\?["']?[A-Za-z0-9/+=]{100,}"#,
    ),
    // Four letters stand somewhere in each megabyte of base64: these begin a run.
    form("aws-bedrock-key", r"(?:^|[^A-Za-z0-9+/])(?P<secret>ABSK[A-Za-z0-9+/]{100,}={0,2})"),
    form("alibaba-key", r"(?:^|[^A-Za-z0-9+/])(?P<secret>LTAI[A-Za-z0-9]{20})(?:[^A-Za-z0-9]|$)"),
    form("yandex-key", r"(?:^|[^A-Za-z0-9+/])(?P<secret>AQVN[A-Za-z0-9_-]{35,38})\b"),
    form("netlify-token", r"nfp_[A-Za-z0-9]{36}"),
    form("openshift-token", r"sha256~[A-Za-z0-9_-]{43}"),
    form("scalingo-token", r"tk-us-[A-Za-z0-9_-]{48}"),
    form("neon-key", r"napi_[a-z0-9]{60,}"),
    form("google-key", r"AIza[A-Za-z0-9_-]{35}"),
    form("google-oauth-secret", r"GOCSPX-[A-Za-z0-9_-]{28}"),
    form("google-token", r"ya29\.[A-Za-z0-9_-]{30,}"),
    form("azure-key", r"(?:Account|SharedAccess)Key=[A-Za-z0-9+/]{42,88}={1,2}"),
    form_if(
        "azure-secret",
        r"(?:^|[^A-Za-z0-9_~.-])(?P<secret>[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34})",
        is_random,
    ),
    form("azure-signature", r"[?&]sig=[A-Za-z0-9%+/]{40,}(?:%3D|=)"),
    form("digitalocean-token", r"do[opr]_v1_[0-9a-f]{64}"),
    form("heroku-key", r"HRKU-AA[A-Za-z0-9_-]{50,}"),
    form("cloudflare-key", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}"),
    form("fly-token", r"(?:fo1_[A-Za-z0-9_-]{43}|fm[12][a-z]?_[A-Za-z0-9+/=_-]{60,})"),
    form_if("vercel-token", r"(?:vercel|vc[apikr])_[A-Za-z0-9]{24,}", always),
    form("supabase-key", r"sbp_[0-9a-f]{40}|sb_secret_[A-Za-z0-9_-]{30,}"),
    form("planetscale-token", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,}"),
    form("databricks-token", r"dapi[0-9a-f]{32}(?:-[0-9])?\b"),
    form("vault-token", r"hv[sbr]\.[A-Za-z0-9_-]{24,}"),
    form("doppler-token", r"dp\.(?:pt|st|sa|ct|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    form("tailscale-key", r"tskey-[a-z]{2,12}-[A-Za-z0-9]{8,}-[A-Za-z0-9]{20,}"),
    form("onepassword-key", r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),
    form("onepassword-token", r"ops_eyJ[A-Za-z0-9+/=_-]{100,}"),
    form("dynatrace-token", r"dt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    form("newrelic-key", r"NR(?:AK|RA|II|JS)-[A-Za-z0-9_-]{27,}"),
    form("grafana-token", r"glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}|glc_[A-Za-z0-9+/]{32,}={0,2}"),
    // Messages, shops, tables.
    form(
        "slack-token",
        r"xox[abeoprs]-(?:[0-9]-)?[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Z0-9]+-[0-9]+-[0-9a-f]{30,}",
    ),
    form("slack-webhook", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{30,}"),
    form("discord-webhook", r"discord(?:app)?\.com/api/webhooks/[0-9]{17,20}/[A-Za-z0-9_-]{60,}"),
    form_if(
        "discord-token",
        r"(?:^|[^A-Za-z0-9_-])(?P<secret>[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38})",
        is_random,
    ),
    form("telegram-token", r"(?:^|[^0-9A-Za-z])(?P<secret>[0-9]{8,10}:AA[A-Za-z0-9_-]{33})"),
    form("sendgrid-key", r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    form("twilio-key", r"(?:^|[^A-Za-z0-9])(?P<secret>SK[0-9a-f]{32})\b"),
    form("mailgun-key", r"(?:^|[^A-Za-z0-9-])(?P<secret>key-[0-9a-f]{32})\b"),
    form("mailchimp-key", r"(?:^|[^A-Za-z0-9])(?P<secret>[0-9a-f]{32}-us[0-9]{1,2})\b"),
    form("brevo-key", r"xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    form_if("resend-key", r"(?:^|[^A-Za-z0-9_])(?P<secret>re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,})", has_digit),
    form("stripe-key", r"[rs]k_(?:live|test)_[A-Za-z0-9]{20,}"),
    form("stripe-webhook", r"whsec_[A-Za-z0-9+/]{30,}={0,2}"),
    form(
        "plaid-token",
        r"access-(?:sandbox|development|production)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    ),
    form("shippo-token", r"shippo_(?:live|test)_[0-9a-f]{40}"),
    form("duffel-token", r"duffel_(?:live|test)_[A-Za-z0-9_=-]{43}"),
    form("easypost-key", r"(?:^|[^A-Za-z0-9+/])(?P<secret>EZ[AT]K[A-Za-z0-9]{54})\b"),
    form("flutterwave-key", r"FLWSECK(?:_TEST)?-[0-9a-z]{12,40}-X"),
    form("facebook-token", r"(?:^|[^A-Za-z0-9+/])(?P<secret>EAA[MC][A-Za-z0-9]{100,})(?:[^A-Za-z0-9+/]|$)"),
    form("dropbox-token", r"\bsl\.(?:u\.)?[A-Za-z0-9_-]{100,}"),
    form("frameio-token", r"fio-u-[A-Za-z0-9_=-]{64}"),
    form("teams-webhook", r"\.webhook\.office\.com/webhookb2/[0-9a-f@-]{60,80}/IncomingWebhook/[0-9a-f]{32}"),
    form("zapier-webhook", r"hooks\.zapier\.com/hooks/catch/[0-9]{5,12}/[A-Za-z0-9]{5,}"),
    form("square-token", r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,}"),
    form("shopify-token", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    form_if("notion-token", r"ntn_[A-Za-z0-9]{40,}", always),
    form("airtable-token", r"(?:^|[^A-Za-z0-9])(?P<secret>pat[A-Za-z0-9]{14}\.[0-9a-f]{64})"),
    form("figma-token", r"fig[dor]_[A-Za-z0-9_-]{40,}"),
    form("hubspot-token", r"pat-[a-z]{2,3}[0-9]-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    form("typeform-token", r"tfp_[A-Za-z0-9_.=-]{59}"),
    form("contentful-token", r"CFPAT-[A-Za-z0-9_-]{43}"),
    form("mapbox-token", r"sk\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}"),
    // Forms of many issuers.
    form("jwt", r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    form_if("basic", r"(?i)\bbasic[ \t]+(?P<secret>[A-Za-z0-9+/]{8,}={0,2})", is_basic),
    form_if("bearer", r"(?i)\bbearer[ \t]+(?P<secret>[A-Za-z0-9._~+/-]{20,}={0,2})", is_random),
    form_if(
        "bearer",
        r#"(?i)\bauthorization["']?[ \t]*[:=][ \t]*\\?["']?(?:token|apikey|key)[ \t]+(?P<secret>[A-Za-z0-9._~+/-]{20,}={0,2})"#,
        is_random,
    ),
    form_if(
        "header-key",
        r#"(?i)\b(?:x-(?:api-key|auth-token|goog-api-key|vault-token|amz-security-token)|api-key|private-token|ocp-apim-subscription-key)["']?[ \t]*[:=][ \t]*\\?["']?(?P<secret>[A-Za-z0-9._~+/-]{16,}={0,2})"#,
        is_random,
    ),
    form_if(
        "url-password",
        r#"[A-Za-z][A-Za-z0-9+.-]*://[^\s:@/"'<>]*:(?P<password>[^\s:@/"'<>]{3,})@"#,
        is_no_placeholder,
    ),
    form_if(
        "url-password",
        r#"(?:postgres(?:ql)?|mysql|mariadb|mongodb(?:\+srv)?|rediss?|amqps?|mssql|clickhouse)://[^\s:@/"'<>]*:(?P<password>[^\s@"'<>]{3,})@"#,
        is_no_placeholder,
    ),
    form_if(
        "command-password",
        r#"\bcurl\b[^\n|;&]{0,300}?[ \t](?:-u|--user)[ \t=]?["']?(?P<secret>[^\s:"'$-][^\s:"'$]{0,60}:[^\s"'$<{]{3,})"#,
        is_no_placeholder,
    ),
    form_if(
        "netrc-password",
        r"(?i)\bmachine[ \t]+\S+\s+login[ \t]+\S+\s+password[ \t]+(?P<secret>\S{3,})",
        is_no_placeholder,
    ),
    form_if(
        "environment-secret",
        r#"\b(?:[A-Z][A-Z0-9]*_)*(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|ACCESS_KEY|PRIVATE_KEY|SECRET_KEY)=\\?["']?(?P<secret>[^\s"'`\\$<>(){}\[\],;]{8,})"#,
        is_random,
    ),
];
