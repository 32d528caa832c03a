//! The protocol, by rmcp: tools, sessions and items as resources, three prompts.
//!
//! Answers are made one after the other: the store is local, and a host waits for one at a time.

use std::sync::Arc;

use acpdb_hosts::export::{ExportChoices, Format, export};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult,
    ErrorCode, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation, JsonObject,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, Prompt, PromptMessage, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Resource, ResourceContents, ResourceTemplate, Role, ServerCapabilities, ServerConfig,
    Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use serde_json::Value;

use super::catalog;
use super::stdio::Stdio;
use super::tools::{ToolError, Tools, texts};
use super::uri::{decoded, encoded};
use crate::due;

/// Sessions that are listed, the newest first.
const SESSION_COUNT_MAX: usize = 50;
const SESSION: &str = "acpdb://session/";
const ITEM: &str = "acpdb://item/";
const MARKDOWN: &str = "text/markdown";
const PLAIN: &str = "text/plain";

/// Why a server ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The runtime did not start.
    #[error("cannot start")]
    Start(#[source] std::io::Error),
    /// Others could use its tools.
    #[error("{0} can be reached by others; listen on 127.0.0.1, or give a token that clients have to send")]
    Exposed(std::net::SocketAddr),
    /// The address cannot be had.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// The client did not begin as the protocol wants.
    #[error("the client did not begin as the protocol wants: {0}")]
    Begin(String),
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(String),
}

/// Serves on standard input and output until the client closes them.
///
/// # Errors
/// If the client does not speak the protocol, or the connection breaks.
pub fn serve_stdio(tools: Tools) -> Result<(), ServerError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(ServerError::Start)?.block_on(async {
        let (input, output) = rmcp::transport::stdio();
        let running = match McpServer::new(tools).serve(Stdio::new(input, output)).await {
            Ok(running) => running,
            // A client that goes before it asked for anything leaves nothing to be done.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(ServerError::Begin(error.to_string())),
        };
        running.waiting().await.map(drop).map_err(|error| ServerError::Broken(error.to_string()))
    })
}

/// The protocol over one set of tools.
#[derive(Clone, Debug)]
pub(super) struct McpServer {
    tools: Tools,
}

impl McpServer {
    /// Serves these tools.
    pub(super) const fn new(tools: Tools) -> Self {
        Self { tools }
    }
}

fn schema(value: Value) -> Arc<JsonObject> {
    Arc::new(match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    })
}

fn internal(error: &ToolError) -> ErrorData {
    match error {
        ToolError::Store(acpdb_engine::Error::NotFound { .. })
        | ToolError::Argument(_)
        | ToolError::OtherProject(_) => ErrorData::resource_not_found(error.to_string(), None),
        _ => ErrorData::internal_error(error.to_string(), None),
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("acpdb", env!("CARGO_PKG_VERSION")))
            .with_instructions(
                "Everything of this session and of earlier ones is kept. recall searches this session, or all of this \
                 project with all_sessions; explain says why a result is hidden, context_discard and context_distill make room, \
                 memory_remember keeps decisions.",
            )
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = catalog::tools().into_iter().map(|tool| {
            let hints = ToolAnnotations::with_title(tool.title)
                .read_only(tool.is_read_only)
                .destructive(false)
                .idempotent(true) // a second call changes nothing more, for all tools
                .open_world(false);
            Tool::new(tool.name, tool.description, schema(tool.input))
                .with_title(tool.title)
                .with_raw_output_schema(schema(tool.output))
                .with_annotations(hints)
        });
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    /// A request of a known name that cannot be read is told from one of an unknown name.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        const KNOWN: [&str; 9] = [
            "initialize",
            "tools/list",
            "tools/call",
            "resources/list",
            "resources/read",
            "resources/templates/list",
            "prompts/list",
            "prompts/get",
            "completion/complete",
        ];
        let CustomRequest { method, .. } = request;
        Err(if KNOWN.contains(&method.as_str()) {
            ErrorData::invalid_params(format!("the parameters of {method} are not of its form"), None)
        } else {
            ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None)
        })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        match self.tools.call(&request.name, &arguments) {
            Ok(reply) => {
                let mut result = CallToolResult::structured(reply.value);
                result.content = vec![ContentBlock::text(reply.text)];
                Ok(result.into())
            }
            Err(ToolError::Unknown(name)) => {
                Err(ErrorData::invalid_params(format!("there is no tool {name}"), None))
            }
            // The model can mend its call, so it gets the error.
            Err(error) => Ok(CallToolResult::error(vec![ContentBlock::text(error.to_string())]).into()),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut sessions = self.tools.sessions().map_err(|error| internal(&error))?;
        sessions.sort_by_key(|session| std::cmp::Reverse(session.head));
        let resources = sessions.into_iter().take(SESSION_COUNT_MAX).map(|session| {
            let mut resource =
                Resource::new(format!("{SESSION}{}", encoded(&session.name)), session.name.clone());
            resource.title = session.title;
            resource.description = Some(format!("The current context of a session of {}", session.host));
            resource.mime_type = Some(MARKDOWN.to_owned());
            resource
        });
        Ok(ListResourcesResult::with_all_items(resources.collect()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = |uri: &str, name: &str, about: &str, media_type: &str| {
            let mut template = ResourceTemplate::new(uri, name);
            template.description = Some(about.to_owned());
            template.mime_type = Some(media_type.to_owned());
            template
        };
        Ok(ListResourceTemplatesResult::with_all_items(vec![
            template("acpdb://session/{session}", "session", "The current context of a session", MARKDOWN),
            template("acpdb://item/{item}", "item", "An item as it was recorded, such as 812", PLAIN),
        ]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let (text, media_type) = if let Some(name) = uri.strip_prefix(SESSION).map(decoded) {
            let session = self.tools.session(Some(&name)).map_err(|error| internal(&error))?;
            let view = self.tools.store().view(session.id).map_err(|error| internal(&error.into()))?;
            let made = export(&view, Format::Markdown, &ExportChoices::default());
            let made = made.map_err(|error| internal(&error.into()))?;
            (String::from_utf8_lossy(&made.bytes).into_owned(), MARKDOWN)
        } else if let Some(item) = uri.strip_prefix(ITEM).map(decoded) {
            let found = acpdb_query::find(self.tools.store(), &item, None);
            let found = found.map_err(|error| internal(&ToolError::Argument(error.to_string())))?;
            let stream = self.tools.reached(found.stream).map_err(|error| internal(&error))?;
            let text = texts(self.tools.store(), &stream, &found.item.to_string());
            (text.map_err(|error| internal(&error))?, PLAIN)
        } else {
            return Err(ErrorData::resource_not_found(format!("there is no resource {uri}"), None));
        };
        Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(media_type)]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(vec![
            Prompt::new("due", Some("What is open and remembered in this project"), None),
            Prompt::new("tidy", Some("Make room in the context without losing what is needed"), None),
            Prompt::new("tasks", Some("Work by tasks, each completed with a summary"), None),
        ]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let text = match &*request.name {
            "due" => self.due().map_err(|error| internal(&error))?,
            "tasks" => super::tools::tasks::RULES.to_owned(),
            "tidy" => "Look at the results in your context. Distill those of which you need only a few points, discard \
                       those that later ones made useless, and keep files that you are editing."
                .to_owned(),
            other => return Err(ErrorData::invalid_params(format!("there is no prompt {other}"), None)),
        };
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
    }
}

impl McpServer {
    fn due(&self) -> Result<String, ToolError> {
        let nothing = || "Nothing is open, and nothing is remembered of this project.".to_owned();
        let session = match self.tools.session(None) {
            Ok(session) => session,
            Err(ToolError::NoSession | ToolError::Store(acpdb_engine::Error::NotFound { .. })) => {
                return Ok(nothing());
            }
            Err(error) => return Err(error),
        };
        let folder = session.folder.clone().unwrap_or_default();
        let none = acpdb_engine::ids::StreamId::STORE;
        Ok(due::text(self.tools.store(), &folder, none)?.unwrap_or_else(nothing))
    }
}
