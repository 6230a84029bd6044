"""A handful of real advisories: ids, packages, versions and scores, as facts for tests, not advice.

Source: GitHub advisories, the NVD and Debian's tracker as remembered in 2026-12; the openssl ones
of 2026 from the changelog of Debian's openssl 3.0.22-1~deb12u2, which gives them no severity.
"""

from typing import NamedTuple

from trivy_db.database import Data, Row

DEBIAN = "debian 12"
PIP = "pip::GitHub Security Advisory pip"
NVD = "https://nvd.nist.gov/vuln/detail/"
# Trivy's numbers. Source: github.com/aquasecurity/trivy-db pkg/types (read 2026-12-01).
SEVERITIES = ("UNKNOWN", "LOW", "MEDIUM", "HIGH", "CRITICAL")
LOW, MEDIUM, HIGH, CRITICAL = 1, 2, 3, 4
WILL_NOT_FIX = 5

SOURCES: dict[str, Row] = {
    DEBIAN: {
        "ID": "debian",
        "Name": "Debian Security Tracker",
        "URL": "https://salsa.debian.org/security-tracker-team/security-tracker",
    },
    PIP: {
        "ID": "ghsa",
        "Name": "GitHub Security Advisory pip",
        "URL": "https://github.com/advisories?query=type%3Areviewed+ecosystem%3Apip",
    },
}


class Advisory(NamedTuple):
    """One row: which package (Debian's source package), which vulnerability, what is said."""

    package: str
    vulnerability: str
    says: Row


class Detail(NamedTuple):
    """One vulnerability: its title, severities by vendor, the NVD's or GitHub's CVSS 3 score."""

    title: str
    severities: dict[str, int]
    score: tuple[str, float, str] | None = None
    cwe: str = ""
    published: str = ""


DEBIAN_ADVISORIES = (
    Advisory("openssl", "CVE-2026-63072", {"FixedVersion": "3.0.22-1~deb12u1"}),
    Advisory("openssl", "CVE-2026-75803", {"FixedVersion": "3.0.22-1~deb12u1"}),
    Advisory("openssl", "CVE-2026-35189", {"FixedVersion": "3.0.22-1~deb12u2"}),
    Advisory("openssl", "CVE-2026-34182", {"FixedVersion": "3.0.20-1~deb12u2"}),
    Advisory("zlib", "CVE-2023-45853", {"Status": WILL_NOT_FIX}),
    Advisory("db5.3", "CVE-2019-8457", {"Status": WILL_NOT_FIX}),
    Advisory("apt", "CVE-2011-3374", {"Severity": LOW}),
    Advisory("util-linux", "CVE-2022-0563", {"Severity": LOW}),
    Advisory("tar", "CVE-2005-2541", {"Severity": LOW}),
    Advisory("glibc", "CVE-2010-4756", {"Severity": LOW}),
    Advisory("perl", "CVE-2011-4116", {"Severity": LOW}),
)

PIP_ADVISORIES = (
    Advisory(
        "jinja2",
        "CVE-2019-10906",
        {"VulnerableVersions": ["<2.10.1"], "PatchedVersions": ["2.10.1"]},
    ),
    Advisory(
        "jinja2",
        "CVE-2020-28493",
        {"VulnerableVersions": ["<2.11.3"], "PatchedVersions": ["2.11.3"]},
    ),
    Advisory(
        "jinja2", "CVE-2024-22195", {"VulnerableVersions": ["<3.1.3"], "PatchedVersions": ["3.1.3"]}
    ),
    Advisory(
        "jinja2", "CVE-2024-56326", {"VulnerableVersions": ["<3.1.5"], "PatchedVersions": ["3.1.5"]}
    ),
    Advisory(
        "pillow",
        "CVE-2023-50447",
        {"VulnerableVersions": ["<10.2.0"], "PatchedVersions": ["10.2.0"]},
    ),
    Advisory(
        "pillow",
        "CVE-2024-28219",
        {"VulnerableVersions": ["<10.3.0"], "PatchedVersions": ["10.3.0"]},
    ),
    Advisory(
        "pillow", "CVE-2022-24303", {"VulnerableVersions": ["<9.0.1"], "PatchedVersions": ["9.0.1"]}
    ),
    Advisory(
        "pyyaml", "CVE-2020-14343", {"VulnerableVersions": ["<5.4"], "PatchedVersions": ["5.4"]}
    ),
    Advisory(
        "requests",
        "CVE-2018-18074",
        {"VulnerableVersions": ["<=2.19.1"], "PatchedVersions": ["2.20.0"]},
    ),
    Advisory(
        "requests",
        "CVE-2023-32681",
        {"VulnerableVersions": [">=2.3.0, <2.31.0"], "PatchedVersions": ["2.31.0"]},
    ),
    Advisory(
        "urllib3",
        "CVE-2019-11324",
        {"VulnerableVersions": ["<1.24.2"], "PatchedVersions": ["1.24.2"]},
    ),
    Advisory(
        "werkzeug",
        "CVE-2023-25577",
        {"VulnerableVersions": ["<2.2.3"], "PatchedVersions": ["2.2.3"]},
    ),
)

DETAILS = {
    "CVE-2026-63072": Detail("Fixed heap buffer overflow in CMS key unwrapping", {}),
    "CVE-2026-75803": Detail(
        "Fixed possibility of AEAD forgeries with empty ciphertext when using EVP_Cipher()", {}
    ),
    "CVE-2026-35189": Detail("Memory Allocation in Relative CRLDP Processing", {}),
    "CVE-2026-34182": Detail(
        "CMS AuthEnvelopedData Processing May Accept Forged Messages",
        {},
        published="2026-06-09T16:03:22Z",
    ),
    "CVE-2023-45853": Detail(
        "zlib: integer overflow and resultant heap-based buffer overflow in zipOpenNewFileInZip4_6",
        {"nvd": CRITICAL, "ubuntu": MEDIUM},
        score=("nvd", 9.8, "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"),
        cwe="CWE-190",
        published="2023-10-14T02:15:00Z",
    ),
    "CVE-2019-8457": Detail(
        "sqlite: heap out-of-bound read in function rtreenode()",
        {"nvd": CRITICAL, "ubuntu": LOW},
        score=("nvd", 9.8, "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"),
        cwe="CWE-125",
        published="2019-05-30T16:29:00Z",
    ),
    "CVE-2011-3374": Detail(
        "It was found that apt-key in apt, all versions, do not "
        "correctly validate gpg keys with the master keyring",
        {"nvd": LOW},
        score=("nvd", 3.7, "CVSS:3.1/AV:N/AC:H/PR:N/UI:N/S:U/C:N/I:L/A:N"),
        cwe="CWE-347",
        published="2019-11-26T00:15:00Z",
    ),
    "CVE-2022-0563": Detail(
        "util-linux: partial disclosure of arbitrary files in "
        "chfn and chsh when compiled with libreadline",
        {"nvd": MEDIUM},
        score=("nvd", 5.5, "CVSS:3.1/AV:L/AC:L/PR:L/UI:N/S:U/C:H/I:N/A:N"),
        cwe="CWE-209",
        published="2022-02-21T19:15:00Z",
    ),
    "CVE-2005-2541": Detail(
        "tar: does not properly warn the user when extracting setuid or setgid files",
        {"nvd": HIGH},
        published="2005-08-10T04:00:00Z",
    ),
    "CVE-2010-4756": Detail(
        "glibc: glob implementation can cause excessive CPU and memory "
        "consumption due to crafted glob expressions",
        {"nvd": MEDIUM},
        cwe="CWE-399",
        published="2011-03-02T20:00:00Z",
    ),
    "CVE-2011-4116": Detail(
        "perl: File:: Temp insecure temporary file handling",
        {"nvd": HIGH},
        score=("nvd", 7.5, "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:N/A:N"),
        cwe="CWE-59",
        published="2020-01-31T18:15:00Z",
    ),
    "CVE-2019-10906": Detail(
        "python-jinja2: str.format_map allows sandbox escape",
        {"ghsa": HIGH, "nvd": HIGH, "redhat": HIGH},
        score=("nvd", 8.6, "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:C/C:H/I:N/A:N"),
        cwe="CWE-693",
        published="2019-04-07T00:29:00Z",
    ),
    "CVE-2020-28493": Detail(
        "python-jinja2: ReDoS vulnerability in the urlize filter",
        {"ghsa": MEDIUM, "nvd": MEDIUM},
        score=("nvd", 5.3, "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:L"),
        cwe="CWE-400",
        published="2021-02-01T20:15:00Z",
    ),
    "CVE-2024-22195": Detail(
        "jinja2: HTML attribute injection when passing user input as keys to xmlattr filter",
        {"ghsa": MEDIUM, "nvd": MEDIUM},
        score=("ghsa", 5.4, "CVSS:3.1/AV:N/AC:L/PR:N/UI:R/S:U/C:L/I:L/A:N"),
        cwe="CWE-79",
        published="2024-01-11T03:15:00Z",
    ),
    "CVE-2024-56326": Detail(
        "jinja2: Jinja has a sandbox breakout through indirect reference to format method",
        {"ghsa": MEDIUM},
        cwe="CWE-1336",
        published="2024-12-23T16:15:00Z",
    ),
    "CVE-2023-50447": Detail(
        "pillow: Arbitrary Code Execution via the environment parameter",
        {"ghsa": CRITICAL, "nvd": HIGH},
        score=("nvd", 8.1, "CVSS:3.1/AV:N/AC:H/PR:N/UI:N/S:U/C:H/I:H/A:H"),
        cwe="CWE-94",
        published="2024-01-19T20:15:00Z",
    ),
    "CVE-2024-28219": Detail(
        "python-pillow: buffer overflow in _imagingcms.c",
        {"ghsa": HIGH},
        score=("ghsa", 6.7, "CVSS:3.1/AV:N/AC:H/PR:L/UI:N/S:U/C:L/I:H/A:L"),
        cwe="CWE-680",
        published="2024-04-03T03:15:00Z",
    ),
    "CVE-2022-24303": Detail(
        "python-pillow: temporary directory with a "
        "space character allows removal of unrelated file",
        {"ghsa": CRITICAL, "nvd": CRITICAL},
        published="2022-03-28T02:15:00Z",
    ),
    "CVE-2020-14343": Detail(
        "PyYAML: incomplete fix for CVE-2020-1747",
        {"ghsa": CRITICAL, "nvd": CRITICAL},
        score=("nvd", 9.8, "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"),
        cwe="CWE-20",
        published="2021-02-09T21:15:00Z",
    ),
    "CVE-2018-18074": Detail(
        "python-requests: Redirect from HTTPS to HTTP does not remove Authorization header",
        {"ghsa": HIGH, "nvd": HIGH},
        score=("nvd", 7.5, "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:N/A:N"),
        cwe="CWE-522",
        published="2018-10-09T17:29:00Z",
    ),
    "CVE-2023-32681": Detail(
        "python-requests: Unintended leak of Proxy-Authorization header",
        {"ghsa": MEDIUM, "nvd": MEDIUM},
        score=("nvd", 6.1, "CVSS:3.1/AV:N/AC:L/PR:N/UI:R/S:C/C:L/I:L/A:N"),
        cwe="CWE-200",
        published="2023-05-26T18:15:00Z",
    ),
    "CVE-2019-11324": Detail(
        "python-urllib3: Certification mishandle when error should be thrown",
        {"ghsa": HIGH, "nvd": HIGH},
        score=("nvd", 7.5, "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:H/A:N"),
        cwe="CWE-295",
        published="2019-04-18T21:29:00Z",
    ),
    "CVE-2023-25577": Detail(
        "python-werkzeug: high resource usage when parsing multipart form data with many fields",
        {"ghsa": HIGH, "nvd": HIGH},
        score=("nvd", 7.5, "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H"),
        cwe="CWE-770",
        published="2023-02-14T20:15:00Z",
    ),
}


def _by_package(advisories: tuple[Advisory, ...]) -> dict[str, dict[str, Row]]:
    made: dict[str, dict[str, Row]] = {}
    for package, vulnerability, says in advisories:
        made.setdefault(package, {})[vulnerability] = says
    return made


def _row(name: str, detail: Detail) -> Row:
    severities = detail.severities
    worst = severities.get("nvd", next(iter(severities.values()), 0))
    row: dict[str, object] = {
        "Title": detail.title,
        "Description": f"{detail.title}.",
        "Severity": SEVERITIES[worst],
        "VendorSeverity": severities,
        "References": [f"{NVD}{name}"],
    }
    if detail.score:
        vendor, number, vector = detail.score
        row["CVSS"] = {vendor: {"V3Score": number, "V3Vector": vector}}
    if detail.cwe:
        row["CweIDs"] = [detail.cwe]
    if detail.published:
        row["PublishedDate"] = row["LastModifiedDate"] = detail.published
    return row


DATA = Data(
    sources=SOURCES,
    advisories={DEBIAN: _by_package(DEBIAN_ADVISORIES), PIP: _by_package(PIP_ADVISORIES)},
    details={name: _row(name, detail) for name, detail in DETAILS.items()},
)
