//! Page loads as shown by a browser's developer tools: each request with its phases.

use std::net::SocketAddrV4;

use super::workload::AppEventKind;

/// A page that was loaded, or was loading at the end of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedPage {
    /// Index of the application in the scenario.
    pub app: usize,
    /// Page number, from 0.
    pub page: u32,
    /// Start time in ns since the Unix epoch.
    pub start_ns: i64,
    /// When it was complete; `None`: not by the end of the run.
    pub loaded_ns: Option<i64>,
    /// Its requests, in the order in which they became necessary.
    pub requests: Vec<PageRequest>,
}

/// A request of a page; times in ns since the Unix epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct PageRequest {
    /// Number of the transfer in the application.
    pub transfer: u64,
    /// The request whose response refers to it.
    pub initiator: Option<u64>,
    /// The requested path.
    pub path: String,
    /// When it could be requested.
    pub wanted_ns: i64,
    /// Duration of the name lookup from then on.
    pub lookup_ns: i64,
    /// When it got a connection, possibly after setup.
    pub begun_ns: Option<i64>,
    /// When the connection was established; `None`: it was reused.
    pub connected_ns: Option<i64>,
    /// When its first byte arrived.
    pub first_byte_ns: Option<i64>,
    /// When its last byte arrived, or it failed.
    pub end_ns: Option<i64>,
    /// Bytes of its body.
    pub bytes: u64,
    /// Whether it failed.
    pub failed: bool,
    /// Local and server address.
    pub addresses: Option<(SocketAddrV4, SocketAddrV4)>,
}

/// Collects pages from the events of browsers.
#[derive(Debug, Default)]
pub(crate) struct PageLog {
    pages: Vec<LoadedPage>,
}

impl PageLog {
    /// Processes an event of an application; those of other applications than browsers have
    /// no page.
    pub(crate) fn ingest(&mut self, app: usize, at_ns: i64, kind: &AppEventKind) {
        match *kind {
            AppEventKind::PageStarted { page } => {
                let requests = Vec::new();
                let page = LoadedPage { app, page, start_ns: at_ns, loaded_ns: None, requests };
                self.pages.push(page);
            }
            AppEventKind::PageLoaded { .. } => {
                if let Some(page) = self.page(app) {
                    page.loaded_ns = Some(at_ns);
                }
            }
            AppEventKind::Wanted { transfer, initiator, lookup_ns } => {
                let Some(page) = self.page(app) else { return };
                // A failed request is sent again.
                page.requests.retain(|one| one.transfer != transfer);
                page.requests.push(PageRequest {
                    transfer,
                    initiator,
                    path: String::new(),
                    wanted_ns: at_ns,
                    lookup_ns,
                    begun_ns: None,
                    connected_ns: None,
                    first_byte_ns: None,
                    end_ns: None,
                    bytes: 0,
                    failed: false,
                    addresses: None,
                });
            }
            AppEventKind::Connected { transfer } => {
                if let Some(request) = self.request(app, transfer) {
                    request.connected_ns = Some(at_ns);
                }
            }
            AppEventKind::RequestStarted { transfer, ref path, addresses, .. } => {
                if let Some(request) = self.request(app, transfer) {
                    request.begun_ns = Some(at_ns);
                    request.path.clone_from(path);
                    request.addresses = addresses;
                }
            }
            AppEventKind::FirstByte { transfer } => {
                if let Some(request) = self.request(app, transfer) {
                    request.first_byte_ns = Some(at_ns);
                }
            }
            AppEventKind::Ended { transfer, bytes, failed } => {
                if let Some(request) = self.request(app, transfer) {
                    request.end_ns = Some(at_ns);
                    (request.bytes, request.failed) = (bytes, failed);
                }
            }
            _ => {}
        }
    }

    fn page(&mut self, app: usize) -> Option<&mut LoadedPage> {
        self.pages.iter_mut().rev().find(|page| page.app == app)
    }

    fn request(&mut self, app: usize, transfer: u64) -> Option<&mut PageRequest> {
        self.page(app)?.requests.iter_mut().find(|one| one.transfer == transfer)
    }

    /// The pages, by start.
    pub(crate) fn finish(mut self) -> Vec<LoadedPage> {
        self.pages.sort_by_key(|page| page.start_ns);
        self.pages
    }
}
