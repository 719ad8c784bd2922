// A view that asks its server again and again, as long as it is looked at.

export class PolledView {
  constructor(pause) {
    this.pause = pause;
  }

  async shown() {
    this.visible = true;
    await this.poll();
    clearInterval(this.timer);
    if (!this.visible) return;
    this.timer = setInterval(() => !document.hidden && this.poll(), this.pause);
  }

  hidden() {
    this.visible = false;
    clearInterval(this.timer);
  }

  async poll() {
    if (this.polling) return;
    this.polling = true;
    try {
      await this.look();
    } catch (error) {
      this.fail(error);
    } finally {
      this.polling = false;
    }
  }
}
