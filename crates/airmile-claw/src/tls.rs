//! Certificates and QUIC configuration.

use std::sync::Arc;
use std::time::Duration;

use airmile_host::tls::{AcceptAnyCertificate, provider};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};

use crate::error::{Connect, Error, Result};

/// HTTP/3.
pub(crate) const H3: &[u8] = b"h3";
/// HTTP/3 whose datagrams are reports (docs/claw-feedback.md).
pub(crate) const H3_CLAW: &[u8] = b"h3-claw";

/// A connection without a packet for this time has ended.
const IDLE: Duration = Duration::from_secs(30);

/// A certificate, its key, and its hash for Chromium.
pub(crate) struct Identity {
    pub(crate) certificates: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
    /// SHA-256 of the public key.
    pub(crate) spki_sha256: Option<[u8; 32]>,
}

impl Identity {
    /// Generates a self-signed certificate.
    pub(crate) fn generate(names: Vec<String>) -> Result<Self> {
        let key = rcgen::KeyPair::generate().connect(|| "making a key".to_owned())?;
        let params =
            rcgen::CertificateParams::new(names).connect(|| "making a certificate".to_owned())?;
        let certificate = params.self_signed(&key).connect(|| "making a certificate".to_owned())?;
        let spki = rcgen::PublicKeyData::subject_public_key_info(&key);
        Ok(Self {
            certificates: vec![certificate.der().clone()],
            spki_sha256: Some(Sha256::digest(spki).into()),
            key: PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        })
    }

    /// Reads PEM files.
    pub(crate) fn read(certificate: &std::path::Path, key: &std::path::Path) -> Result<Self> {
        use rustls::pki_types::pem::PemObject;
        let wrong = |path: &std::path::Path| {
            let path = path.to_owned();
            move |error: rustls::pki_types::pem::Error| Error::File {
                path,
                what: error.to_string(),
            }
        };
        let certificates = CertificateDer::pem_file_iter(certificate)
            .map_err(wrong(certificate))?
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(wrong(certificate))?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(wrong(key))?;
        Ok(Self { certificates, key, spki_sha256: None })
    }
}

pub(crate) fn server(identity: &Identity) -> Result<Arc<QuicServerConfig>> {
    let mut tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .and_then(|tls| {
            tls.with_no_client_auth()
                .with_single_cert(identity.certificates.clone(), identity.key.clone_key())
        })
        .connect(|| "the certificate".to_owned())?;
    tls.alpn_protocols = vec![H3_CLAW.to_vec(), H3.to_vec()];
    // Early data of a handshake could be replayed by others.
    tls.max_early_data_size = 0;
    let quic = QuicServerConfig::try_from(tls).connect(|| "QUIC".to_owned())?;
    Ok(Arc::new(quic))
}

/// A client's configuration; `root`: trusted certificates, `None`: all are trusted.
pub(crate) fn client(
    root: Option<Vec<CertificateDer<'static>>>,
    alpn: &[u8],
) -> Result<quinn::ClientConfig> {
    let builder = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .connect(|| "TLS".to_owned())?;
    let mut tls = match root {
        Some(certificates) => {
            let mut roots = rustls::RootCertStore::empty();
            for certificate in certificates {
                roots.add(certificate).connect(|| "the certificate".to_owned())?;
            }
            builder.with_root_certificates(roots).with_no_client_auth()
        }
        None => builder
            .dangerous()
            .with_custom_certificate_verifier(AcceptAnyCertificate::new())
            .with_no_client_auth(),
    };
    tls.alpn_protocols = vec![alpn.to_vec()];
    let quic = QuicClientConfig::try_from(tls).connect(|| "QUIC".to_owned())?;
    let mut config = quinn::ClientConfig::new(Arc::new(quic));
    let mut transport = transport();
    transport.keep_alive_interval(None);
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// Settings of both sides.
pub(crate) fn transport() -> quinn::TransportConfig {
    let mut transport = quinn::TransportConfig::default();
    transport.max_idle_timeout(IDLE.try_into().ok());
    // Not the limit of a phone: twice the default maximum window.
    transport.receive_window(8_000_000_u32.into());
    transport.stream_receive_window(8_000_000_u32.into());
    transport.send_window(16_000_000);
    transport.datagram_receive_buffer_size(Some(64 * 1024));
    transport
}
