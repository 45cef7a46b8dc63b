//! How are the files of an archive kept in an object store that speaks S3? Where it is and who asks is in the environment, in the
//! variables that other tools read, too.

use std::env;
use std::fs::File;
use std::io;
use std::thread::sleep;
use std::time::Duration;

use rusty_s3::actions::ListObjectsV2;
use rusty_s3::{Bucket, Credentials, S3Action, UrlStyle};
use ureq::Agent;
use ureq::http::StatusCode;
use ureq::tls::{RootCerts, TlsConfig};

use super::store::{Store, StoredFile};
use crate::error::Error;

/// How long a signature is good for.
const SIGNED: Duration = Duration::from_secs(600);
/// After so long, a request has failed.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long to wait before each further attempt.
const AGAIN: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(5)];
const ANSWER_AT_MOST: u64 = 1 << 30;

/// A part of a bucket.
pub(super) struct ObjectStore {
    bucket: Bucket,
    credentials: Option<Credentials>,
    agent: Agent,
    /// What the names of its objects begin with: empty, or ending with `/`.
    prefix: String,
}

impl ObjectStore {
    /// `place`: `BUCKET` or `BUCKET/PREFIX`.
    pub(super) fn from_environment(place: &str) -> Result<ObjectStore, Error> {
        let (name, prefix) = place.split_once('/').unwrap_or((place, ""));
        let prefix = prefix.trim_matches('/');
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let region = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
        let region = region.unwrap_or_else(|| "us-east-1".into());
        let named = variable("AWS_ENDPOINT_URL_S3").or_else(|| variable("AWS_ENDPOINT_URL"));
        // Of one's own, stores know buckets by path.
        let style = if named.is_some() { UrlStyle::Path } else { UrlStyle::VirtualHost };
        let endpoint = named.unwrap_or_else(|| format!("https://s3.{region}.amazonaws.com"));
        let remedy = "set AWS_ENDPOINT_URL to where the object store is";
        let url = endpoint.parse();
        let url =
            url.map_err(|error| Error::new(&endpoint, format!("is no URL ({error})"), remedy))?;
        let bucket = Bucket::new(url, style, name.to_owned(), region);
        let bucket = bucket.map_err(|error| Error::new(&endpoint, error, remedy))?;
        let certificates = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
        let agent = Agent::config_builder()
            .tls_config(certificates)
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            .build();
        let credentials = Credentials::from_env();
        Ok(ObjectStore { bucket, credentials, agent: agent.into(), prefix })
    }

    fn key(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    /// The content of an answer; none where there is no such object.
    fn ask(
        &self,
        send: impl Fn(&Agent) -> Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> io::Result<Option<Vec<u8>>> {
        let mut again = AGAIN.into_iter();
        loop {
            let answer = send(&self.agent).and_then(|mut answer| {
                let body = answer.body_mut().with_config().limit(ANSWER_AT_MOST).read_to_vec()?;
                Ok((answer.status(), body))
            });
            let error = match answer {
                Ok((status, body)) if status.is_success() => return Ok(Some(body)),
                Ok((StatusCode::NOT_FOUND, _)) => return Ok(None),
                Ok((status, body)) => {
                    let error = io::Error::other(format!(
                        "the object store answers {status}{}",
                        says(&body)
                    ));
                    if !status.is_server_error() {
                        return Err(error);
                    }
                    error
                }
                Err(error) => io::Error::other(error.to_string()),
            };
            let Some(wait) = again.next() else { return Err(error) };
            sleep(wait);
        }
    }
}

/// The code of an error, such as `NoSuchBucket`.
fn says(body: &[u8]) -> String {
    let body = String::from_utf8_lossy(body);
    let code = body.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    code.map_or_else(String::new, |(code, _)| format!(" ({code})"))
}

impl Store for ObjectStore {
    fn list(&self, directory: &str) -> io::Result<Vec<StoredFile>> {
        let prefix = self.key(&format!("{}/", directory.trim_end_matches('/')));
        let (mut files, mut further) = (Vec::new(), None::<String>);
        loop {
            let mut list = self.bucket.list_objects_v2(self.credentials.as_ref());
            list.with_prefix(prefix.as_str());
            if let Some(token) = &further {
                list.with_continuation_token(String::clone(token));
            }
            let url = list.sign(SIGNED);
            let answer = self.ask(|agent| agent.get(url.as_str()).call())?;
            let answer = answer.ok_or_else(|| io::Error::other("there is no such bucket"))?;
            let answer = ListObjectsV2::parse_response(&String::from_utf8_lossy(&answer));
            let answer = answer.map_err(|error| io::Error::other(error.to_string()))?;
            for object in answer.contents {
                let path = object.key.strip_prefix(&self.prefix);
                if let Some(path) = path.filter(|path| path.ends_with(".parquet")) {
                    files.push(StoredFile {
                        path: path.to_owned(),
                        bytes: object.size.unwrap_or_default(),
                    });
                }
            }
            further = answer.next_continuation_token;
            if further.is_none() {
                break;
            }
        }
        files.sort();
        Ok(files)
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let key = self.key(path);
        let url = self.bucket.get_object(self.credentials.as_ref(), &key).sign(SIGNED);
        let content = self.ask(|agent| agent.get(url.as_str()).call())?;
        content.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn write(&self, path: &str, content: &[u8]) -> io::Result<()> {
        let key = self.key(path);
        let url = self.bucket.put_object(self.credentials.as_ref(), &key).sign(SIGNED);
        let put = self.ask(|agent| agent.put(url.as_str()).send(content))?;
        put.map(drop).ok_or_else(|| io::Error::other("there is no such bucket"))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let key = self.key(path);
        let url = self.bucket.delete_object(self.credentials.as_ref(), &key).sign(SIGNED);
        self.ask(|agent| agent.delete(url.as_str()).call()).map(drop)
    }

    fn lock(&self) -> io::Result<Option<File>> {
        Ok(None)
    }
}
