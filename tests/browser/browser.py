"""A headless Chromium of our own: where it is found, how it is started, and waiting for what a page comes to show."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException, TimeoutException
from selenium.webdriver import Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

WITHIN_S = 40
WIDE, PHONE = (1280, 900), (390, 844)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def found(*names: str) -> str:
    for name in names:
        path = shutil.which(name)
        if path is not None:
            return path
    raise AssertionError(f"{' or '.join(names)} is missing; Debian's packages are chromium and chromium-driver")


def start(profile: Path) -> Chrome:
    """Its profile, caches and crash reports go to `profile`."""
    options = Options()
    options.binary_location = found(*BROWSERS)
    for argument in (
        "--headless=new",
        # CI is root in a machine of its own.
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--hide-scrollbars",
        "--force-device-scale-factor=1",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-extensions",
        f"--user-data-dir={profile}",
        f"--window-size={WIDE[0]},{WIDE[1]}",
    ):
        options.add_argument(argument)
    service = Service(executable_path=found("chromedriver"), env={**os.environ, "HOME": str(profile)})
    driver = Chrome(options=options, service=service)
    driver.set_page_load_timeout(WITHIN_S)
    return driver


_STILL = (
    "for (const one of document.querySelectorAll('*')) one.style.transition = 'none'; document.activeElement?.blur();"
)
"""Colours change at once, and no cursor blinks."""


class Browser:
    """What a person does: go somewhere, read, fill in, click, wait until something shows."""

    def __init__(self, driver: Chrome, *, url: str, pictures: Path) -> None:
        self.driver = driver
        self.url = url
        self.pictures = pictures

    def go(self, path: str) -> None:
        self.driver.get(f"{self.url}{path}")

    @property
    def path(self) -> str:
        return self.driver.current_url.removeprefix(self.url)

    def sign_in(self, name: str, password: str) -> None:
        self.go("/admin/")
        self.one("#id_username").send_keys(name)
        self.one("#id_password").send_keys(password)
        self.one("input[type=submit]").click()
        self.wait(lambda: self.path == "/admin/", "to be signed in")

    def sign_out(self) -> None:
        self.driver.delete_all_cookies()

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str = "body") -> str:
        """What is seen of it; "" while it is not there."""
        try:
            return self.one(selector).text
        except (NoSuchElementException, StaleElementReferenceException):
            return ""

    def click(self, selector: str) -> None:
        element = self.one(selector)
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def link(self, text: str) -> None:
        self.driver.find_element(By.LINK_TEXT, text).click()

    def wait(self, condition: Callable[[], Any], what: str) -> Any:
        """Until it holds; a page that is just being replaced holds nothing."""
        ignored = (NoSuchElementException, StaleElementReferenceException)
        waiting = WebDriverWait(self.driver, WITHIN_S, poll_frequency=0.1, ignored_exceptions=ignored)
        try:
            return waiting.until(lambda _: condition())
        except TimeoutException:
            found = f"{self.path}, problems {self.problems()}:\n{self.text()[:4000]}"
        raise AssertionError(f"waited for {what}; the page is {found}")

    def wait_for_text(self, text: str, selector: str = "body") -> None:
        self.wait(lambda: text in self.text(selector), f"{text!r} in {selector}")

    def reload_until(self, condition: Callable[[], Any], what: str) -> None:
        """For pages that say how things are at one moment."""

        def look() -> Any:
            if condition():
                return True
            self.driver.refresh()
            return False

        self.wait(look, what)

    def picture(self, name: str, *, size: tuple[int, int] = WIDE, dark: bool = False, at: str = "") -> None:
        """A screenshot, from the top of the page or from a part of it. `make screenshots` puts them where the README has
        them."""
        self.driver.set_window_size(*size)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        self.driver.execute_script(_STILL)
        place = self.driver.find_element(By.CSS_SELECTOR, at or "body")
        self.driver.execute_script("arguments[0].scrollIntoView()", place)
        self.pictures.mkdir(parents=True, exist_ok=True)
        assert self.driver.save_screenshot(str(self.pictures / f"{name}.png"))
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        self.driver.set_window_size(*WIDE)

    def problems(self) -> list[str]:
        """What the browser's console complains about, refused scripts and styles included."""
        return [
            entry["message"]
            for entry in self.driver.get_log("browser")
            if entry["level"] == "SEVERE" and "/favicon.ico" not in entry["message"]
        ]
