"""Making completion callbacks: what is sent (`completion`), to whom and when (`destinations`), and by what (`sender`)."""
