"""Settings: every one can be set in the environment or in a `.env` file beside manage.py (see `.env.example`)."""

import os
from pathlib import Path

from environ import Env

from tinytemporal_site import databases, environment
from tinytemporal_site.secret_key import resolve_secret_key

BASE_DIR = Path(__file__).resolve().parent.parent

env = Env()
# What is in the environment already wins over the file. ENV_FILE names another file; an empty one switches it off.
Env.read_env(os.environ.get("ENV_FILE", BASE_DIR / ".env"))

# --- The web side ---------------------------------------------------------------------------------------------------
DEBUG = environment.read_bool(env, name="DEBUG", default=True)
SECRET_KEY = resolve_secret_key(
    given=environment.read_text(env, name="SECRET_KEY", default=""), debug=DEBUG, keep_in=BASE_DIR / ".secret_key"
)
ALLOWED_HOSTS = environment.read_list(env, name="ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = environment.read_list(env, name="CSRF_TRUSTED_ORIGINS", default=[])

# A proxy before the web side ends TLS for it: everything is https, and it says so in X-Forwarded-Proto.
WEB_HTTPS = environment.read_bool(env, name="WEB_HTTPS", default=False)
if WEB_HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
    SECURE_HSTS_SECONDS = 365 * 24 * 3600
    # Of the admin's own host name.
    SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = True

# Where the admin has payloads decoded that it can't read: Temporal's remote codec protocol, POST {CODEC_ENDPOINT}/decode.
CODEC_ENDPOINT = environment.read_web_address(env, name="CODEC_ENDPOINT")

# --- Roles and their ports ------------------------------------------------------------------------------------------
BIND_ADDRESS = environment.read_bind_address(env, name="BIND_ADDRESS", default="127.0.0.1")
FRONTEND_PORT = environment.read_port(env, name="FRONTEND_PORT", default=7233)
# Of the frontend's HTTP side; None: 7243, or any free one when somebody has that.
HTTP_PORT = environment.read_http_port(env, name="HTTP_PORT")
# Where services outside send the ends of their Nexus operations; `{namespace}` stands for the caller's.
NEXUS_CALLBACK_URL = environment.read_web_address(env, name="NEXUS_CALLBACK_URL") or (
    f"http://{BIND_ADDRESS}:{HTTP_PORT if isinstance(HTTP_PORT, int) else 7243}/namespaces/{{namespace}}/nexus/callback"
)
HISTORY_PORT = environment.read_port(env, name="HISTORY_PORT", default=7234)
MATCHING_PORT = environment.read_port(env, name="MATCHING_PORT", default=7235)
WEB_PORT = environment.read_port(env, name="WEB_PORT", default=8233)
# Where other processes reach this one: BIND_ADDRESS, or this machine's name when that means every address.
ADVERTISE_ADDRESS = environment.read_text(env, name="ADVERTISE_ADDRESS", default="")
# Who plays a role, when that is fixed; otherwise the processes that are there find each other in the database.
HISTORY_HOSTS = environment.read_hosts(env, name="HISTORY_HOSTS")
MATCHING_HOSTS = environment.read_hosts(env, name="MATCHING_HOSTS")

# --- The engine -----------------------------------------------------------------------------------------------------
NUM_HISTORY_SHARDS = environment.read_int(env, name="NUM_HISTORY_SHARDS", default=4, least=1, most=16384)
MATCHING_PARTITIONS = environment.read_int(env, name="MATCHING_PARTITIONS", default=1, least=1, most=1000)
MATCHING_QUEUE_PARTITIONS = environment.read_queue_partitions(env, name="MATCHING_QUEUE_PARTITIONS", most=1000)
TASK_QUEUE_USER_DATA = environment.read_choice(
    env, name="TASK_QUEUE_USER_DATA", default="TABLE", choices=["TABLE", "CHASM"]
)
SUGGEST_CONTINUE_AS_NEW_EVENTS = environment.read_int(
    env, name="SUGGEST_CONTINUE_AS_NEW_EVENTS", default=4096, least=1, most=51200
)
WORKFLOW_RULES = environment.read_bool(env, name="WORKFLOW_RULES", default=False)
# For users' tests: time can be moved ahead, by TestService and by SDKs' test environments.
TIME_SKIPPING = environment.read_bool(env, name="TIME_SKIPPING", default=False)

# Where completion callbacks may go: patterns of HOST or HOST:PORT with `*`, before one `http://` to allow calls without TLS.
CALLBACK_ALLOWED_ADDRESSES = environment.read_callback_addresses(env, name="CALLBACK_ALLOWED_ADDRESSES")

# --- Databases ------------------------------------------------------------------------------------------------------
DATABASES = {
    "default": databases.database_settings(
        environment.read_text(env, name="DATABASE_URL", default="sqlite:///tinytemporal.sqlite3"),
        name="DATABASE_URL",
        base_dir=BASE_DIR,
    )
}
# Which alias holds a History shard; a shard that is not named is in `default`. Each further alias has its own URL.
HISTORY_SHARD_DATABASES = environment.read_shard_databases(
    env, name="HISTORY_SHARD_DATABASES", shards=NUM_HISTORY_SHARDS
)
for _alias in sorted(set(HISTORY_SHARD_DATABASES.values()) - {"default"}):
    _variable = f"DATABASE_URL_{_alias.upper()}"
    DATABASES[_alias] = databases.database_settings(
        environment.read_text(env, name=_variable, default=""), name=_variable, base_dir=BASE_DIR
    )
# The read model's own database, when it has one.
VISIBILITY_DATABASE_URL = environment.read_text(env, name="VISIBILITY_DATABASE_URL", default="")
if VISIBILITY_DATABASE_URL:
    DATABASES["visibility"] = databases.database_settings(
        VISIBILITY_DATABASE_URL, name="VISIBILITY_DATABASE_URL", base_dir=BASE_DIR
    )
    DATABASE_ROUTERS = ["visibility.router.VisibilityRouter"]
# PostgreSQL is reached through a pooler in transaction mode, where nothing may outlive its transaction.
DATABASE_POOLER = environment.read_bool(env, name="DATABASE_POOLER", default=False)
# Connections of one process to each PostgreSQL database at most: the engine's, and those of the admin's pages and commands.
DATABASE_WRITERS = environment.read_int(env, name="DATABASE_WRITERS", default=4, least=1, most=1000)
DATABASE_READERS = environment.read_int(env, name="DATABASE_READERS", default=4, least=1, most=1000)
DATABASE_WEB_CONNECTIONS = environment.read_int(env, name="DATABASE_WEB_CONNECTIONS", default=6, least=2, most=1000)
# In one spelling, for those who open the database without Django.
DATABASE_URL = databases.normal_url(DATABASES["default"])

# --- Django ---------------------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "tinytemporal_site",
    "history",
    "matching",
    "visibility",
    "frontend",
    "worker",
    # Before the admin: its templates are extended by the console's.
    "tinytemporal_site.console",
    "tinytemporal_site.console.admin_config.ConsoleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "tinytemporal_site.static_files.StaticFilesMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
ROOT_URLCONF = "tinytemporal_site.urls"
ASGI_APPLICATION = "tinytemporal_site.asgi.application"
WSGI_APPLICATION = "tinytemporal_site.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
STATIC_URL = "/static/"
# Straight from the installed packages, with DEBUG on or off: nothing has to be collected first.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False
LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

# --- Logging --------------------------------------------------------------------------------------------------------
LOG_LEVEL = environment.read_choice(
    env, name="LOG_LEVEL", default="INFO", choices=["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
)
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        name: {"level": LOG_LEVEL}
        for name in ("common", "history", "matching", "visibility", "frontend", "worker", "tinytemporal_site")
    },
}
