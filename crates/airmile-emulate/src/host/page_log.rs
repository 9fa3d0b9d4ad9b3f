//! Pages as a browser's own tools show them: each request with its phases.

use std::net::SocketAddrV4;

use super::workload::AppEventKind;

/// A page that was loaded, or was loading when the run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedPage {
    /// Which application's, by its place in the scenario.
    pub app: usize,
    /// Counts from 0.
    pub page: u32,
    /// When it began, in ns since the Unix epoch.
    pub start_ns: i64,
    /// When all of it was there; `None`: the run ended before.
    pub loaded_ns: Option<i64>,
    /// Its requests, in the order in which they were wanted.
    pub requests: Vec<PageRequest>,
}

/// A request of a page; times in ns since the Unix epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct PageRequest {
    /// Its number in the application.
    pub transfer: u64,
    /// The request that asks for it.
    pub initiator: Option<u64>,
    /// What is asked for.
    pub path: String,
    /// When it could be asked for.
    pub wanted_ns: i64,
    /// How long the name lookup took from then on.
    pub lookup_ns: i64,
    /// When it had a connection, which may have had to be set up first.
    pub begun_ns: Option<i64>,
    /// When that was set up; `None`: it was there.
    pub connected_ns: Option<i64>,
    /// When its first byte came.
    pub first_byte_ns: Option<i64>,
    /// When its last byte came, or it failed.
    pub end_ns: Option<i64>,
    /// Bytes of its body.
    pub bytes: u64,
    /// Whether it failed.
    pub failed: bool,
    /// Own address and the server's.
    pub addresses: Option<(SocketAddrV4, SocketAddrV4)>,
}

/// Collects pages from the events of browsers.
#[derive(Debug, Default)]
pub(crate) struct PageLog {
    pages: Vec<LoadedPage>,
}

impl PageLog {
    /// Takes an event of an application; those that are no browser's have no page.
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
                // What failed is asked for anew.
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
