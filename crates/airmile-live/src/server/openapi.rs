//! The interface's own description (OpenAPI 3.1), with schemas from the response types.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};
use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::{
    Content, HttpMethod, InfoBuilder, OpenApiBuilder, PathItem, PathsBuilder, Ref, RefOr,
    ResponseBuilder,
};

use super::{BurstsAnswer, PacketsAnswer, Refusal, SessionAnswer, StatusAnswer, TransfersAnswer};
use crate::snapshot::LiveEvent;

const JSON: &str = "application/json";

/// The document.
pub(super) fn document() -> Value {
    let mut schemas =
        SchemaSettings::draft2020_12().with(|s| s.definitions_path = "/components/schemas".into());
    schemas.meta_schema = None;
    let mut schemas = schemas.into_generator();
    let paths = [
        path("/", "The page", "text/html", None),
        path("/metrics", "Metrics for Prometheus", "text/plain", None),
        path("/v1/status", "What is coming in", JSON, Some(name::<StatusAnswer>(&mut schemas))),
        path(
            "/v1/session",
            "The last transfers together",
            JSON,
            Some(name::<SessionAnswer>(&mut schemas)),
        ),
        path(
            "/v1/transfers",
            "The last transfers",
            JSON,
            Some(name::<TransfersAnswer>(&mut schemas)),
        ),
        path("/v1/bursts", "The last bursts", JSON, Some(name::<BurstsAnswer>(&mut schemas))),
        path(
            "/v1/packets",
            "The traffic of the interface",
            JSON,
            Some(name::<PacketsAnswer>(&mut schemas)),
        ),
        path(
            "/v1/events",
            "Events as they come",
            "text/event-stream",
            Some(name::<LiveEvent>(&mut schemas)),
        ),
        path("/v1/openapi.json", "This document", JSON, None),
    ];
    name::<Refusal>(&mut schemas);
    let paths = paths.into_iter().fold(PathsBuilder::new(), |all, (at, item)| all.path(at, item));
    let info = InfoBuilder::new()
        .title("airmile live")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("What limits a phone's transfers, while they run."))
        .build();
    let document = OpenApiBuilder::new().info(info).paths(paths.build()).build();
    // Plain data can always be serialised as JSON.
    let mut document = serde_json::to_value(document).unwrap_or_default();
    let definitions = schemas.take_definitions(true);
    if let Some(document) = document.as_object_mut() {
        document.insert("components".into(), json!({ "schemas": definitions }));
    }
    document
}

/// The name of a type's schema.
fn name<T: JsonSchema>(schemas: &mut SchemaGenerator) -> String {
    schemas.subschema_for::<T>();
    T::schema_name().into_owned()
}

fn path(at: &str, what: &str, kind: &str, schema: Option<String>) -> (String, PathItem) {
    let schema = schema.map(|name| RefOr::Ref(Ref::from_schema_name(name)));
    let done = ResponseBuilder::new().description(what).content(kind, Content::new(schema));
    let refused = |why: &str| {
        let refusal = RefOr::Ref(Ref::from_schema_name("Refusal"));
        ResponseBuilder::new().description(why).content(JSON, Content::new(Some(refusal))).build()
    };
    let mut operation = OperationBuilder::new()
        .summary(Some(what))
        .response("200", done.build())
        .response("401", refused("No token, or not this machine's own name"));
    if at == "/v1/bursts" {
        let limit = ParameterBuilder::new()
            .name("limit")
            .parameter_in(ParameterIn::Query)
            .description(Some("How many"))
            .schema(Some(
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::Type::Integer)
                    .minimum(Some(0))
                    .maximum(Some(u32::MAX)),
            ))
            .build();
        operation =
            operation.parameter(limit).response("400", refused("The limit is not a number"));
    }
    if at == "/v1/events" {
        operation = operation.response("503", refused("Too many streams are open"));
    }
    (at.to_owned(), PathItem::new(HttpMethod::Get, operation))
}
