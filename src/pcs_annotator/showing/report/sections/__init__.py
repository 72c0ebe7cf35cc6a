"""The sections of the page: functions that turn a `View` into markup."""
