//! What happens when libgyan.so is loaded? One environment variable is read. Nothing else, unless `gyan doctor`
//! has set it: then the process records what it is.

use crate::calls::containment::contain;
use crate::config;
use crate::delivery::diagnosis;

ctor::declarative::ctor! {
    // SAFETY: the C library is initialised before objects that need it, and this code, which runs before
    // `main`, relies on nothing else.
    #[ctor(unsafe)]
    fn loaded() {
        if let Some(directory) = config::doctor() {
            contain("telling gyan doctor", || diagnosis::begin(&directory));
        }
    }
}
