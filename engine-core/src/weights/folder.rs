//! Lists the files of a folder.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// Names of all files in a folder, in order. Links to files count; names that are not Unicode do not.
pub(super) fn file_names(folder: &Path) -> io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        // Asked through the path, since Hugging Face caches are folders of links.
        if entry.path().is_file()
            && let Ok(name) = entry.file_name().into_string()
        {
            names.insert(name);
        }
    }
    Ok(names)
}
