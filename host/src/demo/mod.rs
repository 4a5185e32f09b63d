//! A good MCP server on rmcp, and the same with one fault.
//!
//! The server itself ([`handler`], [`tools`], [`surfaces`]) knows nothing of faults. A [`Fault`] is an edit of the
//! messages between it and its client, made in one place for both transports ([`wire`], [`edit`]).
//!
//! | module | owns |
//! |---|---|
//! | [`tools`] | the table of tools: names, hints, schemas |
//! | [`notebook`] | the notes and jobs of one session |
//! | [`handler`] | answers to requests |
//! | [`surfaces`] | resources, prompts, completion |
//! | [`faults`] | the table of faults: names, what each violates and costs |
//! | [`wire`] | the transport that a fault edits |
//! | [`edit`] | the edits |
//! | [`seat`] | the one place a quarrelsome server has for clients |
//! | [`http`] | the same server over Streamable HTTP |

mod edit;
mod faults;
mod handler;
mod http;
mod notebook;
mod seat;
mod surfaces;
mod tools;
mod wire;

#[cfg(test)]
mod tests;

use rmcp::service::serve_server_with_ct;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio_pipes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::error::{Error, Result};

pub use faults::{Cost, Fault};
pub use http::serve_http;

/// Serves one session on stdin and stdout, until stdin ends.
///
/// # Errors
///
/// [`Error::Unfinished`] if the conversation could not be opened.
pub async fn serve_stdio(fault: Option<Fault>) -> Result<()> {
    let (input, output) = stdio_pipes();
    serve_pipes(input, output, fault).await
}

/// Serves one session on a pair of pipes, until the input ends. An input that ends before a handshake is no error.
async fn serve_pipes<R, W>(input: R, output: W, fault: Option<Fault>) -> Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let closing = CancellationToken::new();
    let transport = AsyncRwTransport::new_server(input, output);
    let wire = wire::Wire::new(transport, fault, seat::Scope::siblings(), Some(closing.clone()));
    match serve_server_with_ct(handler::Demo::default(), wire, closing.clone()).await {
        Ok(service) => match service.waiting().await {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::unfinished(format!("the demo server stopped: {error}"))),
        },
        // The client left, or a fault made the server leave, before the handshake.
        Err(_) if closing.is_cancelled() => Ok(()),
        Err(error) => Err(Error::unfinished(format!("the demo server could not open its session: {error}"))),
    }
}
